// SPDX-License-Identifier: Apache-2.0
//! Names as small numbers, so many and no more.

use std::collections::HashMap;

pub(super) type Name = u16;

/// No name, or one that is not told apart because there are too many.
pub(super) const NONE: Name = Name::MAX;

pub(super) struct Names {
    numbers: HashMap<String, Name>,
    names: Vec<String>,
    max: usize,
    /// How often a name came that is not told apart.
    pub(super) passed_over: u64,
}

impl Names {
    pub(super) fn new(max: usize) -> Self {
        debug_assert!(max < usize::from(NONE));
        Self { numbers: HashMap::new(), names: Vec::new(), max, passed_over: 0 }
    }

    pub(super) fn of(&mut self, name: &str) -> Name {
        if let Some(known) = self.numbers.get(name) {
            return *known;
        }
        if self.names.len() == self.max {
            self.passed_over += 1;
            return NONE;
        }
        let number = self.names.len() as Name;
        self.numbers.insert(name.to_owned(), number);
        self.names.push(name.to_owned());
        number
    }

    pub(super) fn name(&self, number: Name) -> Option<&str> {
        self.names.get(usize::from(number)).map(String::as_str)
    }

    /// The name as it is told.
    pub(super) fn told(&self, number: Name) -> String {
        self.name(number).unwrap_or("other").to_owned()
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }
}
