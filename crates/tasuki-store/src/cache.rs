// SPDX-License-Identifier: Apache-2.0
//! The bodies that were written last, so that a short-lived handoff is served without the disk.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use tasuki_core::{Body, Position};

/// How many bytes of bodies are kept.
const BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Default)]
pub(crate) struct BodyCache {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    bodies: HashMap<Position, Body>,
    oldest: VecDeque<Position>,
    bytes: usize,
}

impl BodyCache {
    pub(crate) fn put(&self, at: Position, body: Body) {
        let mut inner = self.inner.lock().expect("no holder of this lock panics");
        inner.bytes += body.text().len();
        inner.oldest.push_back(at);
        inner.bodies.insert(at, body);
        while inner.bytes > BYTES_MAX {
            let Some(oldest) = inner.oldest.pop_front() else { break };
            if let Some(body) = inner.bodies.remove(&oldest) {
                inner.bytes -= body.text().len();
            }
        }
    }

    /// For a body that was erased.
    pub(crate) fn remove(&self, at: Position) {
        let mut inner = self.inner.lock().expect("no holder of this lock panics");
        if let Some(body) = inner.bodies.remove(&at) {
            inner.bytes -= body.text().len();
        }
    }

    /// For a log whose positions may be given a second time.
    pub(crate) fn clear(&self) {
        *self.inner.lock().expect("no holder of this lock panics") = Inner::default();
    }

    pub(crate) fn get(&self, at: Position) -> Option<Body> {
        self.inner.lock().expect("no holder of this lock panics").bodies.get(&at).cloned()
    }
}
