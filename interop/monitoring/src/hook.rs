// SPDX-License-Identifier: Apache-2.0
//! Takes what is posted to a webhook, and keeps it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use anyhow::Context;
use serde_json::Value;

/// An alert by its rule, target and severity.
pub(crate) type Named = (String, String, String);

/// A webhook on loopback.
pub(crate) struct Hook {
    pub(crate) url: String,
    told: Arc<Mutex<BTreeMap<Named, u32>>>,
}

impl Hook {
    pub(crate) fn open() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}/hook", listener.local_addr()?);
        let told = Arc::<Mutex<BTreeMap<Named, u32>>>::default();
        let keeps = told.clone();
        // It ends with the process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if let Err(error) = take(&stream, &keeps) {
                    println!("a notice could not be read: {error}");
                }
            }
        });
        Ok(Self { url, told })
    }

    /// What was told to fire, and how often.
    pub(crate) fn firing(&self) -> BTreeMap<Named, u32> {
        self.told.lock().unwrap().clone()
    }
}

fn take(mut stream: &TcpStream, told: &Mutex<BTreeMap<Named, u32>>) -> anyhow::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        anyhow::ensure!(reader.read_line(&mut line)? > 0, "it ended in its head");
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let notice: Value = serde_json::from_slice(&body)?;
    anyhow::ensure!(notice["version"] == "4", "{notice}");
    let alerts = notice["alerts"].as_array().context("no alerts")?;
    for alert in alerts.iter().filter(|alert| alert["status"] == "firing") {
        let label = |name: &str| alert["labels"][name].as_str().unwrap_or_default().to_owned();
        let named = (label("alertname"), label("target"), label("severity"));
        *told.lock().unwrap().entry(named).or_default() += 1;
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")?;
    Ok(())
}
