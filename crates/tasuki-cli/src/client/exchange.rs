// SPDX-License-Identifier: Apache-2.0
//! One request and its answer, whatever they are: for those who want to see how a server answers.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderValue};

use super::{Client, Method, escaped, innermost};

/// How much of an answer is read.
const ANSWER_BYTES_MAX: usize = 8 << 20;

pub struct Sent<'s> {
    pub method: Method,
    pub path: &'s str,
    pub query: &'s [(String, String)],
    pub body: Option<Vec<u8>>,
    /// How long everything may take, to the last byte of the answer.
    pub timeout: Duration,
}

impl Client {
    /// The status and the bytes of an answer, or why there is none.
    pub async fn exchange(&self, sent: Sent<'_>) -> Result<(u16, Vec<u8>), String> {
        let mut url = self.at(sent.path);
        for (number, (name, value)) in sent.query.iter().enumerate() {
            url.push(if number == 0 { '?' } else { '&' });
            url += &format!("{}={}", escaped(name), escaped(value));
        }
        let mut request = self.http.request(sent.method, url).timeout(sent.timeout);
        if let Some(body) = sent.body {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            request = request.body(body);
        }
        let request = request.build().map_err(|error| innermost(&error))?;
        let mut answer = self.send_once(&request).await.map_err(|failure| failure.message)?;
        let status = answer.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(|error| innermost(&error))? {
            bytes.extend_from_slice(&part);
            if bytes.len() > ANSWER_BYTES_MAX {
                return Err(format!("the answer has more than {ANSWER_BYTES_MAX} bytes"));
            }
        }
        Ok((status, bytes))
    }

    /// Whether anybody listens there at all.
    pub async fn is_there(&self, timeout: Duration) -> anyhow::Result<()> {
        let request = self.http.get(self.at("/healthz")).timeout(timeout).build();
        let request = request.map_err(|error| self.unreachable(&error))?;
        match self.http.execute(request).await {
            Err(error) if error.is_connect() => {
                let hint = "start one with `tasuki serve`, or name another with --target";
                Err(self.unreachable(&error).hint(hint).into())
            }
            // Whatever it says, and if it is nothing: that is for the checks to find out.
            _ => Ok(()),
        }
    }
}
