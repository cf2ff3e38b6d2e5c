// SPDX-License-Identifier: Apache-2.0
//! Which servers a broker trusts.

use scratch_postgres::{Server, shared};
use tasuki_store::postgres::{inspect, password_in, without_password};
use tasuki_store::{ManualClock, Postgres, PostgresError, PostgresOptions, Store};

use crate::stage::BEGIN;
use crate::{open, options};

fn name(url: &str) -> &str {
    url.rsplit('/').next().unwrap()
}

#[tokio::test]
async fn a_server_that_acknowledges_before_it_syncs_is_refused() {
    let url = shared().database().await;
    let set = format!("ALTER DATABASE {} SET synchronous_commit = off", name(&url));
    shared().run_sql("postgres", &set).await;
    let error = open(&url).await.err().unwrap();
    assert!(error.to_string().contains("synchronous_commit"), "{error}");
    assert!(matches!(inspect(&url, None).await, Err(PostgresError::Unsafe(_))));
}

#[tokio::test]
async fn a_database_that_only_reads_is_refused() {
    let url = shared().database().await;
    let set = format!("ALTER DATABASE {} SET default_transaction_read_only = on", name(&url));
    shared().run_sql("postgres", &set).await;
    assert!(matches!(open(&url).await.err(), Some(PostgresError::ReadOnly)));
}

#[tokio::test]
async fn a_standby_is_refused() {
    let primary = Server::start();
    let standby = Server::standby_of(&primary);
    assert!(matches!(open(&standby.url("postgres")).await.err(), Some(PostgresError::ReadOnly)));
}

#[tokio::test]
async fn a_schema_of_a_newer_broker_is_refused_and_left_alone() {
    let url = shared().database().await;
    drop(open(&url).await.unwrap());
    let newer = "INSERT INTO schema_version (version) VALUES (99)";
    shared().run_sql(name(&url), newer).await;
    let error = open(&url).await.err().unwrap();
    assert!(matches!(error, PostgresError::Newer { found: 99, .. }), "{error}");
    assert!(error.to_string().contains("newer"), "{error}");
}

#[tokio::test]
async fn a_primary_that_was_replaced_is_refused() {
    let url = shared().database().await;
    drop(open(&url).await.unwrap());
    shared().run_sql(name(&url), "UPDATE log_head SET timeline = 7").await;
    let error = open(&url).await.err().unwrap();
    assert!(matches!(error, PostgresError::Replaced { found: 1, known: 7 }), "{error}");
    let error = inspect(&url, None).await.err().unwrap();
    assert!(matches!(error, PostgresError::Replaced { found: 1, known: 7 }), "doctor says so too");
}

#[tokio::test]
async fn what_cannot_be_reached_or_read_is_said_without_the_password() {
    let gone = open("postgres://u:secret@127.0.0.1:1/db").await.err().unwrap().to_string();
    assert!(gone.contains("cannot be reached") && !gone.contains("secret"), "{gone}");
    let bad = open("postgres://u:secret@h/db?mood=good").await.err().unwrap().to_string();
    assert!(bad.contains("postgres://user@host") && !bad.contains("secret"), "{bad}");
    let refused = inspect("host=127.0.0.1 user=u password=secret", None).await.unwrap_err();
    assert!(matches!(refused, PostgresError::Url(_)), "{refused}");
    assert!(!refused.to_string().contains("secret"), "{refused}");
    for url in ["postgres://u:secret@h/db", "postgres://h/db?user=u&password=secret"] {
        assert_eq!(password_in(url), Some("secret"), "{url}");
    }
    let shown = without_password("postgres://u:secret@h:5432/db?password=secret");
    assert_eq!(shown, "postgres://u@h:5432/db");
    assert_eq!(without_password("postgres://u:se?cr@t@h/db"), "postgres://u@h/db");
    assert_eq!(without_password("postgres://h/db"), "postgres://h/db");
}

#[tokio::test]
async fn a_transaction_that_is_open_for_long_is_found() {
    let server = inspect(&shared().url("postgres"), None).await.unwrap();
    assert_eq!((server.timeline, server.synchronous_commit.as_str()), (1, "on"));
    assert!(server.old_transactions.is_empty());
}

#[tokio::test]
async fn a_server_is_believed_as_far_as_the_url_says() {
    let server = Server::start();
    let ca = server.encrypt().await;
    let url = server.url("postgres");
    let ask = async |mode: &str, ca: Option<&std::path::Path>| {
        inspect(&format!("{url}?sslmode={mode}"), ca).await
    };
    // The server takes encrypted connections only, so these were encrypted.
    assert!(ask("prefer", None).await.is_ok());
    assert!(ask("require", Some(&ca)).await.is_ok());
    assert!(matches!(ask("require", None).await, Err(PostgresError::Unreachable(_))));
    assert!(matches!(ask("disable", None).await, Err(PostgresError::Unreachable(_))));
    let nothing = ca.with_file_name("nothing.pem");
    std::fs::write(&nothing, "").unwrap();
    assert!(matches!(ask("require", Some(&nothing)).await, Err(PostgresError::Tls(_))));
    let options = PostgresOptions { ca: Some(ca), ..options(&format!("{url}?sslmode=require")) };
    let store = Postgres::open(options, ManualClock::at(BEGIN)).await.unwrap();
    store.close().await;
}
