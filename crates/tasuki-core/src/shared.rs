// SPDX-License-Identifier: Apache-2.0
//! Lists of which most owners have none: an empty one takes no room of its own, and copies of an owner
//! share the others until one of them changes, so that copying an owner costs the same however long
//! its lists are.

use std::ops::Deref;
use std::sync::Arc;

pub struct SharedList<T>(Option<Arc<Vec<T>>>);

impl<T: Clone> SharedList<T> {
    /// To be changed, apart from all copies.
    pub fn edit(&mut self) -> &mut Vec<T> {
        Arc::make_mut(self.0.get_or_insert_default())
    }

    pub fn push(&mut self, item: T) {
        self.edit().push(item);
    }

    /// Keeps what is wanted. Nothing is copied if that is everything.
    pub fn retain(&mut self, wanted: impl Fn(&T) -> bool) {
        if !self.iter().all(&wanted) {
            self.edit().retain(wanted);
        }
        if self.is_empty() {
            self.clear();
        }
    }

    pub fn clear(&mut self) {
        self.0 = None;
    }

    /// The last one, to be changed. Nothing is copied if there is none.
    pub fn last_mut(&mut self) -> Option<&mut T> {
        if self.is_empty() { None } else { self.edit().last_mut() }
    }
}

impl<T> Clone for SharedList<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for SharedList<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Deref for SharedList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0.as_ref().map_or(&[], |list| list.as_slice())
    }
}

impl<T: PartialEq> PartialEq for SharedList<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for SharedList<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T> From<Vec<T>> for SharedList<T> {
    fn from(list: Vec<T>) -> Self {
        Self((!list.is_empty()).then(|| Arc::new(list)))
    }
}

impl<T> FromIterator<T> for SharedList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        items.into_iter().collect::<Vec<_>>().into()
    }
}

impl<'l, T> IntoIterator for &'l SharedList<T> {
    type Item = &'l T;
    type IntoIter = std::slice::Iter<'l, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_share_a_list_until_one_of_them_changes_it() {
        let mut one: SharedList<u32> = [1, 2].into_iter().collect();
        let other = one.clone();
        assert!(std::ptr::eq(&raw const one[0], &raw const other[0]));
        one.retain(|_| true);
        assert!(std::ptr::eq(&raw const one[0], &raw const other[0]), "nothing was to be changed");
        one.push(3);
        assert_eq!((&one[..], &other[..]), (&[1, 2, 3][..], &[1, 2][..]));
    }

    #[test]
    fn an_empty_list_takes_no_room_of_its_own() {
        let mut list = SharedList::from(vec![1]);
        list.retain(|_| false);
        assert!(list.0.is_none() && list.last_mut().is_none() && list.0.is_none());
    }
}
