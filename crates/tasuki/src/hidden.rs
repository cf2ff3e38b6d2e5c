// SPDX-License-Identifier: Apache-2.0
//! A password on the command line is seen by everybody who lists the processes. The process starts
//! itself once more without it, under the same id, and takes the password along in its environment,
//! which only its owner can read.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

use tasuki_store::postgres::{password_in, without_password};

use crate::config::STORE_PASSWORD;
use crate::exit::Failure;

pub(crate) fn hide_passwords() -> Result<(), Failure> {
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_else(|| "tasuki".into());
    let mut found = None;
    let mut hidden = Vec::new();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            // What follows is another program's.
            hidden.push(argument);
            hidden.extend(arguments);
            break;
        }
        hidden.push(match parted(&argument)? {
            Some((kept, password)) => {
                found = Some(password);
                kept
            }
            None => argument,
        });
    }
    let Some(password) = found else { return Ok(()) };
    let itself = std::env::current_exe().map_err(|error| refused(&error.to_string()))?;
    let error = Command::new(itself).arg0(name).args(hidden).env(STORE_PASSWORD, password).exec();
    Err(refused(&error.to_string()))
}

/// An argument without its password, and the password as it is meant.
fn parted(argument: &OsStr) -> Result<Option<(OsString, String)>, Failure> {
    let Some(text) = argument.to_str() else { return Ok(None) };
    let (flag, value) = match text.split_once('=') {
        Some((flag, value)) if flag.starts_with("--") && !flag.contains("://") => (flag, value),
        _ => ("", text),
    };
    if !value.starts_with("postgres://") && !value.starts_with("postgresql://") {
        return Ok(None);
    }
    if value.split('?').nth(1).is_some_and(|query| query.contains("password=")) {
        return Err(refused("it stands in the query of the URL"));
    }
    let Some(password) = password_in(value) else { return Ok(None) };
    let password = unescaped(password).ok_or_else(|| refused("it is not valid in a URL"))?;
    let query = value.split_once('?').map(|(_, query)| format!("?{query}")).unwrap_or_default();
    let kept = without_password(value) + &query;
    let kept = if flag.is_empty() { kept } else { format!("{flag}={kept}") };
    Ok(Some((kept.into(), password)))
}

/// A password as it is meant, from how a URL spells it.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        rest = more;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, more) = more.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = more;
    }
    String::from_utf8(bytes).ok()
}

fn refused(why: &str) -> Failure {
    Failure::usage(
        format!("the password on the command line cannot be hidden: {why}"),
        format!(
            "leave it out of the URL, and put it into {STORE_PASSWORD} or --store-password-file"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_leaves_the_argument_and_nothing_else_does() {
        let part = |text: &str| {
            let found = parted(OsStr::new(text)).unwrap();
            found.map(|(kept, password)| (kept.into_string().unwrap(), password))
        };
        let both = |kept: &str, password: &str| Some((kept.to_owned(), password.to_owned()));
        assert_eq!(part("postgres://a:b%40c@h/d"), both("postgres://a@h/d", "b@c"));
        assert_eq!(
            part("--store=postgres://a:b@h:1/d?sslmode=require"),
            both("--store=postgres://a@h:1/d?sslmode=require", "b")
        );
        assert_eq!(part("postgres://a@h/d"), None);
        assert_eq!(part("--payload={\"x\":\"a:b@c\"}"), None);
        assert!(parted(OsStr::new("postgres://h/d?password=x")).is_err());
    }
}
