// SPDX-License-Identifier: Apache-2.0
//! A small proxy in front of the real broker that breaks one rule: it changes what is asked, or what
//! is answered. And servers that are none at all.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

/// What a client asked.
pub(crate) struct Asked {
    pub(crate) method: String,
    /// With its query.
    pub(crate) path: String,
    pub(crate) text: Vec<u8>,
    /// What the proxy remembers from one request to the next.
    pub(crate) known: Arc<Mutex<BTreeMap<String, Value>>>,
}

/// What the broker answered.
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

#[derive(Clone, Copy)]
pub(crate) struct Breakage {
    pub(crate) asked: fn(&mut Asked),
    pub(crate) answered: fn(&Asked, &mut Answered),
}

impl Asked {
    pub(crate) fn body(&self) -> Value {
        serde_json::from_slice(&self.text).unwrap_or_default()
    }

    /// Changes the body, where it is JSON.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Value)) {
        let before = self.body();
        let mut body = before.clone();
        if body.is_object() {
            change(&mut body);
        }
        // What was not changed goes on as it came, to the byte.
        if body != before {
            self.text = body.to_string().into_bytes();
        }
    }

    /// Whether it is this call, as `POST /v1/handoffs/*/complete`.
    pub(crate) fn is(&self, method: &str, path: &str) -> bool {
        let own = self.path.split('?').next().unwrap().split('/');
        let fits = own.clone().zip(path.split('/')).all(|(own, one)| one == "*" || one == own);
        self.method == method && fits && own.count() == path.split('/').count()
    }
}

impl Answered {
    /// Every envelope in the answer: of one claim, of several, and by itself.
    pub(crate) fn envelopes(&mut self, asked: &Asked, mut change: impl FnMut(&mut Value)) {
        if asked.is("GET", "/v1/handoffs/*/envelope") && self.status == 200 {
            change(&mut self.body);
        }
        if asked.is("POST", "/v1/handoffs/*/claim") && self.status == 200 {
            change(&mut self.body["envelope"]);
        }
        for claim in self.body.get_mut("claims").and_then(Value::as_array_mut).into_iter().flatten()
        {
            change(&mut claim["envelope"]);
        }
    }
}

/// Serves on a port of its own for as long as the tests run. Returns its URL.
pub(crate) fn serve(answer: impl Fn(TcpStream) + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            thread::spawn(move || answer(stream));
        }
    });
    url
}

/// A proxy to the broker at this address.
pub(crate) fn broken(upstream: &str, breakage: Breakage) -> String {
    let upstream = upstream.to_owned();
    let known = Arc::new(Mutex::new(BTreeMap::new()));
    // Whoever hangs up meanwhile is not interested in the answer.
    serve(move |stream| drop(pass(stream, &upstream, breakage, &known)))
}

fn pass(
    mut stream: TcpStream,
    upstream: &str,
    breakage: Breakage,
    known: &Arc<Mutex<BTreeMap<String, Value>>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some((first, length)) = head(&mut reader)? {
        let mut words = first.split(' ');
        let method = words.next().unwrap_or_default().to_owned();
        let path = words.next().unwrap_or_default().to_owned();
        let mut text = vec![0; length];
        reader.read_exact(&mut text)?;
        let mut asked = Asked { method, path, text, known: known.clone() };
        (breakage.asked)(&mut asked);
        let mut answered = forward(upstream, &asked)?;
        (breakage.answered)(&asked, &mut answered);
        let body = answered.body.to_string();
        let head = format!(
            "HTTP/1.1 {} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answered.status,
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes())?;
    }
    Ok(())
}

/// The first line of a message and the length of its body; nothing if the other side is gone.
fn head(reader: &mut impl BufRead) -> std::io::Result<Option<(String, usize)>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            return Ok(Some((first, length)));
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
}

fn forward(upstream: &str, asked: &Asked) -> std::io::Result<Answered> {
    let mut stream = TcpStream::connect(upstream)?;
    let head_text = format!(
        "{} {} HTTP/1.1\r\nhost: {upstream}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        asked.method,
        asked.path,
        asked.text.len()
    );
    stream.write_all(head_text.as_bytes())?;
    stream.write_all(&asked.text)?;
    let mut reader = BufReader::new(stream);
    let (first, length) = head(&mut reader)?.unwrap_or_default();
    let mut text = vec![0; length];
    reader.read_exact(&mut text)?;
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok(Answered {
        status: status.unwrap_or(502),
        body: serde_json::from_slice(&text).unwrap_or_default(),
    })
}
