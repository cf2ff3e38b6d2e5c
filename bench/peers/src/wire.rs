//! A buffered connection for protocols made of lines and counted blocks.
//!
//! Its buffers are reused, so that a client allocates nothing while it is measured.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

/// Holds a reply with its message, so that most replies take one read.
const BUFFER_BYTES: usize = 16 * 1024;

pub(crate) struct Wire {
    stream: BufReader<TcpStream>,
    line: Vec<u8>,
    block: Vec<u8>,
}

impl Wire {
    pub(crate) async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await.context("cannot connect")?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::with_capacity(BUFFER_BYTES, stream),
            line: Vec::new(),
            block: Vec::new(),
        })
    }

    pub(crate) async fn send(&mut self, request: &[u8]) -> Result<()> {
        self.stream.get_mut().write_all(request).await.context("cannot send")
    }

    /// The next line, without its end.
    pub(crate) async fn line(&mut self) -> Result<&str> {
        self.line.clear();
        self.stream.read_until(b'\n', &mut self.line).await.context("cannot receive")?;
        let Some(line) = self.line.strip_suffix(b"\r\n") else {
            bail!("the server closed the connection");
        };
        std::str::from_utf8(line).context("the server sent a line that is not text")
    }

    /// The next `bytes` bytes; the line end after them is dropped.
    pub(crate) async fn block(&mut self, bytes: usize) -> Result<&[u8]> {
        Ok(&self.exactly(bytes + 2).await?[..bytes])
    }

    /// The next `bytes` bytes, whatever comes after them.
    pub(crate) async fn exactly(&mut self, bytes: usize) -> Result<&[u8]> {
        self.block.resize(bytes, 0);
        self.stream.read_exact(&mut self.block).await.context("cannot receive")?;
        Ok(&self.block)
    }

    /// The bytes that were read last, once more.
    pub(crate) fn last(&self) -> &[u8] {
        &self.block
    }
}
