// SPDX-License-Identifier: Apache-2.0
//! Ways to break the protocol, one rule at a time, and which checks must find it. Every check has one
//! that it finds.

mod below;
mod changed;
mod lost;
pub(crate) mod quiet;
mod rules;
mod taken;
mod talk;
mod together;

use crate::proxy::{Answered, Asked, Breakage};

/// A name, what it breaks, and exactly the checks that fail then.
pub(crate) type Row = (&'static str, Breakage, &'static [&'static str]);

pub(crate) fn all() -> impl Iterator<Item = &'static Row> {
    let of_hops = [rules::ALL, taken::ALL, lost::ALL, changed::ALL, quiet::ALL, talk::ALL];
    of_hops.into_iter().chain([together::ALL, below::ALL]).flatten()
}

const fn asks(asked: fn(&mut Asked)) -> Breakage {
    Breakage { asked, answered: |_, _| {} }
}

const fn answers(answered: fn(&Asked, &mut Answered)) -> Breakage {
    Breakage { asked: |_| {}, answered }
}
