// SPDX-License-Identifier: Apache-2.0
//! Writes a value in its canonical form (RFC 8785) in one walk, without a tree in between. Members
//! are written as they come and put in order when their object ends. The library does the hard part,
//! numbers with a fraction; tests compare the rest with it.

use std::cmp::Ordering;
use std::fmt::Display;
use std::ops::Range;

use serde::Serialize;
use serde::ser::{self, Error as _, Serializer};
use serde_json::{Error, Value};

/// What `serde_json` calls a piece of JSON that is text already. A test holds it against the name
/// that it really uses.
const VERBATIM: &str = "$serde_json::private::RawValue";

/// The canonical form of a value. A map with a key that is no string, or a number that JSON cannot
/// hold, is an error.
pub(super) fn canonical<T: Serialize + ?Sized>(value: &T) -> Result<String, Error> {
    let mut writer = Writer { text: String::with_capacity(1024), ..Writer::default() };
    value.serialize(&mut writer)?;
    Ok(writer.text)
}

/// JSON that is passed on as it is.
pub(super) struct Verbatim<'a>(pub(super) &'a str);

impl Serialize for Verbatim<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut to = to.serialize_struct(VERBATIM, 1)?;
        ser::SerializeStruct::serialize_field(&mut to, VERBATIM, self.0)?;
        ser::SerializeStruct::end(to)
    }
}

#[derive(Default)]
struct Writer {
    text: String,
    /// The members of every object that is not at its end yet, the outermost first.
    members: Vec<Member>,
    /// Their names as they are, without quotes and escapes.
    names: String,
    /// Where members are put in order.
    ordered: String,
}

struct Member {
    name: Range<usize>,
    /// Name and value as they are written.
    text: Range<usize>,
}

/// Canonical is the order of UTF-16, which differs from that of UTF-8 only beyond ASCII.
fn compare(one: &str, other: &str) -> Ordering {
    if one.is_ascii() && other.is_ascii() {
        one.cmp(other)
    } else {
        one.encode_utf16().cmp(other.encode_utf16())
    }
}

impl Writer {
    fn string(&mut self, text: &str) {
        self.text.push('"');
        write_escaped(text, &mut self.text);
        self.text.push('"');
    }

    fn display(&mut self, value: impl Display) {
        use std::fmt::Write as _;
        // Writing to memory does not fail.
        let _ = write!(self.text, "{value}");
    }

    fn sequence(&mut self, close: &'static str) -> Sequence<'_> {
        self.text.push('[');
        Sequence { writer: self, is_first: true, close }
    }

    fn object(&mut self, close: &'static str) -> Object<'_> {
        self.text.push('{');
        Object {
            start: self.text.len(),
            first: self.members.len(),
            names: self.names.len(),
            in_order: true,
            verbatim: false,
            writer: self,
            close,
        }
    }

    /// Writes `{"variant":`, to be closed with what is in it.
    fn variant(&mut self, variant: &str) {
        self.text.push('{');
        self.string(variant);
        self.text.push(':');
    }
}

/// As canonical JSON writes texts, which is as `serde_json` does: only quotes, backslashes and
/// control characters are escaped. Most texts have few of them, so what lies between is copied.
fn write_escaped(text: &str, to: &mut String) {
    let is_special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    let mut rest = text;
    loop {
        let bytes = rest.as_bytes();
        // Sixteen at a time, which the compiler turns into few instructions.
        let plain = bytes.chunks_exact(16).take_while(|chunk| {
            let special = chunk.iter().map(is_special);
            !special.fold(false, |any, special| any | special)
        });
        let plain = plain.count() * 16;
        let Some(at) = bytes[plain..].iter().position(is_special) else {
            to.push_str(rest);
            return;
        };
        let at = plain + at;
        to.push_str(&rest[..at]);
        match bytes[at] {
            b'"' => to.push_str("\\\""),
            b'\\' => to.push_str("\\\\"),
            0x08 => to.push_str("\\b"),
            b'\t' => to.push_str("\\t"),
            b'\n' => to.push_str("\\n"),
            0x0c => to.push_str("\\f"),
            b'\r' => to.push_str("\\r"),
            control => {
                const HEX: [char; 16] = [
                    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
                ];
                to.push_str("\\u00");
                to.push(HEX[usize::from(control >> 4)]);
                to.push(HEX[usize::from(control & 0xf)]);
            }
        }
        rest = &rest[at + 1..];
    }
}

struct Sequence<'w> {
    writer: &'w mut Writer,
    is_first: bool,
    close: &'static str,
}

impl Sequence<'_> {
    fn item<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Error> {
        if !std::mem::replace(&mut self.is_first, false) {
            self.writer.text.push(',');
        }
        item.serialize(&mut *self.writer)
    }

    fn close(self) {
        self.writer.text.push_str(self.close);
    }
}

struct Object<'w> {
    writer: &'w mut Writer,
    /// Where its members begin: in the text, in the list of them, and among the names.
    start: usize,
    first: usize,
    names: usize,
    in_order: bool,
    /// Whether it stands for JSON that is text already.
    verbatim: bool,
    close: &'static str,
}

impl Object<'_> {
    /// Writes the name of the next member: a text, or a number or a word as one.
    fn name<T: Serialize + ?Sized>(&mut self, name: &T) -> Result<(), Error> {
        let writer = &mut *self.writer;
        if writer.members.len() > self.first {
            writer.text.push(',');
        }
        let start = writer.text.len();
        name.serialize(&mut *writer)?;
        match writer.text.as_bytes()[start] {
            b'"' => {}
            b'{' | b'[' | b'n' => return Err(Error::custom("the name of a member is a text")),
            _ => {
                writer.text.insert(start, '"');
                writer.text.push('"');
            }
        }
        let written = &writer.text[start..];
        let names = writer.names.len();
        if written.contains('\\') {
            writer.names.push_str(&serde_json::from_str::<String>(written)?);
        } else {
            writer.names.push_str(&written[1..written.len() - 1]);
        }
        let name = names..writer.names.len();
        if let Some(before) = writer.members[self.first..].last() {
            let (before, name) = (&writer.names[before.name.clone()], &writer.names[name.clone()]);
            self.in_order &= compare(before, name).is_lt();
        }
        writer.text.push(':');
        writer.members.push(Member { name, text: start..start });
        Ok(())
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut *self.writer)?;
        if let Some(member) = self.writer.members.last_mut() {
            member.text.end = self.writer.text.len();
        }
        Ok(())
    }

    fn member<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Error> {
        if self.verbatim {
            return self.verbatim(value);
        }
        self.name(name)?;
        self.value(value)
    }

    /// Reads JSON that is text, and writes it in its canonical form.
    fn verbatim<T: Serialize + ?Sized>(&mut self, text: &T) -> Result<(), Error> {
        let text = serde_json::to_value(text)?;
        let text = text.as_str().ok_or_else(|| Error::custom("JSON is text"))?;
        serde_json::from_str::<Value>(text)?.serialize(&mut *self.writer)
    }

    fn close(self) {
        if self.verbatim {
            return;
        }
        let Writer { text, members, names, ordered } = &mut *self.writer;
        if !self.in_order {
            let mine = &mut members[self.first..];
            let name = |member: &Member| &names[member.name.clone()];
            mine.sort_by(|one, other| compare(name(one), name(other)));
            ordered.clear();
            for (place, member) in mine.iter().enumerate() {
                // Of two with one name the last one counts, as in a map.
                if mine.get(place + 1).is_some_and(|next| name(next) == name(member)) {
                    continue;
                }
                if !ordered.is_empty() {
                    ordered.push(',');
                }
                ordered.push_str(&text[member.text.clone()]);
            }
            text.truncate(self.start);
            text.push_str(ordered);
        }
        members.truncate(self.first);
        names.truncate(self.names);
        text.push_str(self.close);
    }
}

impl<'w> Serializer for &'w mut Writer {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Sequence<'w>;
    type SerializeTuple = Sequence<'w>;
    type SerializeTupleStruct = Sequence<'w>;
    type SerializeTupleVariant = Sequence<'w>;
    type SerializeMap = Object<'w>;
    type SerializeStruct = Object<'w>;
    type SerializeStructVariant = Object<'w>;

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.text.push_str(if value { "true" } else { "false" });
        Ok(())
    }
    fn serialize_i8(self, value: i8) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }
    fn serialize_i16(self, value: i16) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }
    fn serialize_i32(self, value: i32) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }
    fn serialize_i64(self, value: i64) -> Result<(), Error> {
        self.display(value);
        Ok(())
    }
    fn serialize_u8(self, value: u8) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }
    fn serialize_u16(self, value: u16) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }
    fn serialize_u32(self, value: u32) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }
    fn serialize_u64(self, value: u64) -> Result<(), Error> {
        self.display(value);
        Ok(())
    }
    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.serialize_f64(value.into())
    }
    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        if !value.is_finite() {
            return self.serialize_unit();
        }
        self.text.push_str(&serde_json_canonicalizer::to_string(&value)?);
        Ok(())
    }
    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }
    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.string(value);
        Ok(())
    }
    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        let mut items = self.sequence("]");
        value.iter().try_for_each(|byte| items.item(byte))?;
        items.close();
        Ok(())
    }
    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<(), Error> {
        self.text.push_str("null");
        Ok(())
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.serialize_str(variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.variant(variant);
        value.serialize(&mut *self)?;
        self.text.push('}');
        Ok(())
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Sequence<'w>, Error> {
        Ok(self.sequence("]"))
    }
    fn serialize_tuple(self, _: usize) -> Result<Sequence<'w>, Error> {
        Ok(self.sequence("]"))
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Sequence<'w>, Error> {
        Ok(self.sequence("]"))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Sequence<'w>, Error> {
        self.variant(variant);
        Ok(self.sequence("]}"))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Object<'w>, Error> {
        Ok(self.object("}"))
    }
    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Object<'w>, Error> {
        if name == VERBATIM {
            let (start, first, names) = (self.text.len(), self.members.len(), self.names.len());
            let (in_order, verbatim, close) = (true, true, "");
            return Ok(Object { writer: self, start, first, names, in_order, verbatim, close });
        }
        Ok(self.object("}"))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Object<'w>, Error> {
        self.variant(variant);
        Ok(self.object("}}"))
    }
    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<(), Error> {
        self.text.push('"');
        let start = self.text.len();
        self.display(value);
        let written = &self.text[start..];
        // What is shown so is an id or a date almost always, in which nothing is escaped.
        if written.bytes().any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
            let plain = self.text.split_off(start);
            write_escaped(&plain, &mut self.text);
        }
        self.text.push('"');
        Ok(())
    }
}

macro_rules! sequences {
    ($($trait:ident::$method:ident)+) => {
        $(
            impl ser::$trait for Sequence<'_> {
                type Ok = ();
                type Error = Error;
                fn $method<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Error> {
                    self.item(item)
                }
                fn end(self) -> Result<(), Error> {
                    self.close();
                    Ok(())
                }
            }
        )+
    };
}

sequences! {
    SerializeSeq::serialize_element
    SerializeTuple::serialize_element
    SerializeTupleStruct::serialize_field
    SerializeTupleVariant::serialize_field
}

macro_rules! structs {
    ($($trait:ident)+) => {
        $(
            impl ser::$trait for Object<'_> {
                type Ok = ();
                type Error = Error;
                fn serialize_field<T: Serialize + ?Sized>(
                    &mut self,
                    name: &'static str,
                    value: &T,
                ) -> Result<(), Error> {
                    self.member(name, value)
                }
                fn end(self) -> Result<(), Error> {
                    self.close();
                    Ok(())
                }
            }
        )+
    };
}

structs! { SerializeStruct SerializeStructVariant }

impl ser::SerializeMap for Object<'_> {
    type Ok = ();
    type Error = Error;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.name(key)
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.value(value)
    }
    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}
