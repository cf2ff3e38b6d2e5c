// SPDX-License-Identifier: Apache-2.0
//! Memories with everything that does not depend on what they are put together with. Working that
//! out (cutting, counting tokens, stemming) is most of what an assembly costs the first time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use tasuki_core::assembly::{Item, Prepared, Tokenizer};
use tasuki_core::{DocumentId, document};

use crate::memories::SeenMemory;

/// How much text one assembly looks at, beside what it is told to: the newest and the most relevant
/// memories up to it.
pub(crate) const CONSIDERED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How many memories a generation has, and how much text they are; a memory takes several times the
/// size of its text. A generation holds what one assembly may look at twice, so that an assembly
/// never drives out what it needs itself.
const GENERATION_MAX: usize = 8192;
const GENERATION_BYTES_MAX: usize = 2 * CONSIDERED_BYTES_MAX;

/// What makes a memory another one here: its revision, and how it is marked.
type Key = (DocumentId, u32, bool, document::Priority, Tokenizer);

#[derive(Default)]
pub(crate) struct Ready(Mutex<Generations<Key, Arc<Prepared>>>);

impl Ready {
    /// The memory, ready; `item` says what it is if nobody has asked for it lately.
    pub(crate) fn prepare(
        &self,
        memory: &SeenMemory,
        tokenizer: Tokenizer,
        item: impl FnOnce(&SeenMemory) -> Option<Item>,
    ) -> Option<Arc<Prepared>> {
        let document = &memory.kept.document;
        let revision = memory.kept.revision.number;
        let key = (document.id.clone(), revision, document.pinned, document.priority, tokenizer);
        // An erased text is gone from here, too.
        memory.content.as_ref()?;
        let shelf = || self.0.lock().expect("no holder of this lock panics");
        if let Some(known) = shelf().get(&key) {
            return Some(known);
        }
        let made = Arc::new(Prepared::new(item(memory)?, tokenizer));
        shelf().put(key, made.clone(), made.item().text.len());
        Some(made)
    }
}

/// A cache that forgets what has not been used for longest, by halves: what is used moves to the
/// younger one, and when that is full the elder is dropped. No use of it costs more than another.
struct Generations<K, V> {
    young: HashMap<K, (V, usize)>,
    old: HashMap<K, (V, usize)>,
    young_bytes: usize,
}

impl<K, V> Default for Generations<K, V> {
    fn default() -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), young_bytes: 0 }
    }
}

impl<K: Eq + Hash + Clone, V: Clone> Generations<K, V> {
    fn get(&mut self, key: &K) -> Option<V> {
        if let Some((value, _)) = self.young.get(key) {
            return Some(value.clone());
        }
        let (value, bytes) = self.old.remove(key)?;
        self.put(key.clone(), value.clone(), bytes);
        Some(value)
    }

    fn put(&mut self, key: K, value: V, bytes: usize) {
        let full = self.young.len() >= GENERATION_MAX
            || self.young_bytes.saturating_add(bytes) > GENERATION_BYTES_MAX;
        if full {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        match self.young.insert(key, (value, bytes)) {
            Some((_, before)) => self.young_bytes = self.young_bytes - before + bytes,
            None => self.young_bytes += bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_again_and_again_stays_whatever_passes_by() {
        let mut cache: Generations<usize, ()> = Generations::default();
        let quarter = GENERATION_BYTES_MAX / 4;
        cache.put(0, (), quarter);
        for other in 1..100 {
            cache.put(other, (), quarter);
            assert!(cache.get(&0).is_some(), "after {other} others");
        }
        assert!(cache.get(&1).is_none());
        assert!(cache.young_bytes <= GENERATION_BYTES_MAX);
    }

    #[test]
    fn an_assembly_finds_all_of_what_it_looked_at_before() {
        let mut cache: Generations<usize, ()> = Generations::default();
        let number = 64;
        let bytes = CONSIDERED_BYTES_MAX / number;
        for round in 0..10 {
            for memory in 0..number {
                let known = cache.get(&memory).is_some();
                assert_eq!(known, round > 0, "memory {memory} in round {round}");
                if !known {
                    cache.put(memory, (), bytes);
                }
            }
        }
    }
}
