// SPDX-License-Identifier: Apache-2.0
//! Reads HTTP header values that are structured dictionaries (RFC 9651), and is stricter than that
//! RFC: where it lets the last of two equal keys win, both are refused. Readers that disagree on
//! which one counts are how a signature comes to cover something else than what is acted on.

use std::convert::Infallible;

use sfv::visitor::{
    DictionaryVisitor, EntryVisitor, InnerListVisitor, ItemVisitor, ParameterVisitor,
};
use sfv::{BareItemFromInput, KeyRef, Parser};

/// How long a header value may be, in bytes.
pub(super) const HEADER_BYTES_MAX: usize = 4096;

pub(super) type Bare<'a> = BareItemFromInput<'a>;
pub(super) type Params<'a> = Vec<(&'a str, Bare<'a>)>;

/// One member of a dictionary: an item, or without one, an inner list.
pub(super) struct Member<'a> {
    pub(super) key: &'a str,
    pub(super) item: Option<Bare<'a>>,
    pub(super) list: Vec<Part<'a>>,
    pub(super) params: Params<'a>,
}

pub(super) struct Part<'a> {
    pub(super) item: Bare<'a>,
    pub(super) params: Params<'a>,
}

/// Reads a dictionary. The error text says what is wrong and where, and repeats no input.
pub(super) fn dictionary(header: &str) -> Result<Vec<Member<'_>>, String> {
    if header.len() > HEADER_BYTES_MAX {
        return Err(format!("header is longer than {HEADER_BYTES_MAX} bytes"));
    }
    let read = Parser::new(header).parse_dictionary_with_visitor(Members(Vec::new()));
    read.map_err(|error| error.to_string())
}

/// The parameter of this name.
pub(super) fn param<'m, 'a>(params: &'m Params<'a>, name: &str) -> Option<&'m Bare<'a>> {
    params.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
}

#[derive(Debug, thiserror::Error)]
#[error("the same key stands twice")]
struct Repeated;

struct Members<'a>(Vec<Member<'a>>);

impl<'de> DictionaryVisitor<'de> for Members<'de> {
    type Out = Vec<Member<'de>>;
    type Error = Repeated;

    fn entry(&mut self, key: &'de KeyRef) -> Result<impl EntryVisitor<'de>, Repeated> {
        let key = key.as_str();
        if self.0.iter().any(|member| member.key == key) {
            return Err(Repeated);
        }
        let member = Member { key, item: None, list: Vec::new(), params: Vec::new() };
        Ok(self.0.push_mut(member))
    }
    fn finish(self) -> Result<Self::Out, Repeated> {
        Ok(self.0)
    }
}

impl<'de> EntryVisitor<'de> for &mut Member<'de> {
    type Error = Infallible;

    fn item(self) -> Result<impl ItemVisitor<'de>, Infallible> {
        Ok(move |item: Bare<'de>| {
            // Taking the reference out makes this a closure that runs once and may lend from it.
            let member = self;
            member.item = Some(item);
            Ok::<_, Infallible>(ParamsOf(&mut member.params))
        })
    }
    fn inner_list(self) -> Result<impl InnerListVisitor<'de>, Infallible> {
        Ok(self)
    }
}

impl<'de> InnerListVisitor<'de> for &mut Member<'de> {
    type Error = Infallible;

    fn item(&mut self) -> Result<impl ItemVisitor<'de>, Infallible> {
        let list = &mut self.list;
        Ok(move |item: Bare<'de>| {
            let list = list;
            let part = list.push_mut(Part { item, params: Vec::new() });
            Ok::<_, Infallible>(ParamsOf(&mut part.params))
        })
    }
    fn finish(self) -> Result<impl ParameterVisitor<'de>, Infallible> {
        Ok(ParamsOf(&mut self.params))
    }
}

struct ParamsOf<'m, 'a>(&'m mut Params<'a>);

impl<'de> ParameterVisitor<'de> for ParamsOf<'_, 'de> {
    type Out = ();
    type Error = Repeated;

    fn parameter(&mut self, key: &'de KeyRef, value: Bare<'de>) -> Result<(), Repeated> {
        let key = key.as_str();
        if param(self.0, key).is_some() {
            return Err(Repeated);
        }
        self.0.push((key, value));
        Ok(())
    }
    fn finish(self) -> Result<(), Repeated> {
        Ok(())
    }
}
