// SPDX-License-Identifier: Apache-2.0
//! The bodies that were written last, so that a short-lived handoff is served without the disk.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Mutex;

use tasuki_core::Body;

/// How many bytes of bodies are kept.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// By the position of the event that they came with, or, where positions may be given twice, by
/// their hash.
pub(crate) struct BodyCache<K> {
    inner: Mutex<Inner<K>>,
}

struct Inner<K> {
    bodies: HashMap<K, Body>,
    oldest: VecDeque<K>,
    bytes: usize,
}

impl<K> Default for BodyCache<K> {
    fn default() -> Self {
        let (bodies, oldest, bytes) = (HashMap::new(), VecDeque::new(), 0);
        Self { inner: Mutex::new(Inner { bodies, oldest, bytes }) }
    }
}

impl<K: Copy + Eq + Hash> BodyCache<K> {
    pub(crate) fn put(&self, key: K, body: Body) {
        let mut inner = self.inner.lock().expect("no holder of this lock panics");
        inner.bytes += body.text().len();
        inner.oldest.push_back(key);
        if let Some(same) = inner.bodies.insert(key, body) {
            inner.bytes -= same.text().len();
        }
        while inner.bytes > BYTES_MAX {
            let Some(oldest) = inner.oldest.pop_front() else { break };
            if let Some(body) = inner.bodies.remove(&oldest) {
                inner.bytes -= body.text().len();
            }
        }
    }

    /// For a body that was erased.
    pub(crate) fn remove(&self, key: K) {
        let mut inner = self.inner.lock().expect("no holder of this lock panics");
        if let Some(body) = inner.bodies.remove(&key) {
            inner.bytes -= body.text().len();
        }
    }

    pub(crate) fn get(&self, key: K) -> Option<Body> {
        self.inner.lock().expect("no holder of this lock panics").bodies.get(&key).cloned()
    }
}
