// SPDX-License-Identifier: Apache-2.0
//! Spans as an `ExportTraceServiceRequest` of OpenTelemetry's protocol, in protocol buffers. The format
//! of those is a number and a kind before each field, and the messages are few, so they are written
//! here; `interop/monitoring` reads them with OpenTelemetry's own classes.

use tasuki_core::trace::{Kind, Link, Mark, Span, Value};

/// How a field is written.
const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const BYTES: u64 = 2;
const FIXED_32: u64 = 5;

/// Whom spans are from, for every span of a request.
pub(crate) struct Resource {
    pub(crate) service: &'static str,
    pub(crate) version: &'static str,
    pub(crate) instance: String,
}

pub(crate) fn request(resource: &Resource, spans: &[Span]) -> Vec<u8> {
    let mut request = Message::default();
    request.message(1, |resource_spans| {
        resource_spans.message(1, |told| {
            told.attribute(1, "service.name", &Value::Text(resource.service.into()));
            told.attribute(1, "service.version", &Value::Text(resource.version.into()));
            told.attribute(1, "service.instance.id", &Value::Text(resource.instance.clone()));
        });
        resource_spans.message(2, |scope_spans| {
            scope_spans.message(1, |scope| {
                scope.bytes(1, resource.service.as_bytes());
                scope.bytes(2, resource.version.as_bytes());
            });
            for span in spans {
                scope_spans.message(2, |message| message.span(span));
            }
        });
    });
    request.0
}

/// How many spans a receiver says that it refused, and why.
pub(crate) fn refused(response: &[u8]) -> Option<(u64, String)> {
    let partial = fields(response)?.into_iter().find_map(|(number, field)| match field {
        Field::Bytes(bytes) if number == 1 => Some(bytes),
        Field::Bytes(_) | Field::Number(_) => None,
    });
    let Some(partial) = partial else { return Some((0, String::new())) };
    let (mut count, mut why) = (0, String::new());
    for (number, field) in fields(partial)? {
        match (number, field) {
            (1, Field::Number(refused)) => count = refused,
            (2, Field::Bytes(text)) => why = String::from_utf8_lossy(text).into_owned(),
            _ => {}
        }
    }
    Some((count, why))
}

#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        loop {
            let low = (value & 0x7f) as u8;
            value >>= 7;
            if value == 0 {
                return self.0.push(low);
            }
            self.0.push(low | 0x80);
        }
    }

    fn tag(&mut self, field: u64, kind: u64) {
        self.varint(field << 3 | kind);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.tag(field, BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.tag(field, VARINT);
        self.varint(value);
    }

    fn fixed_64(&mut self, field: u64, value: u64) {
        self.tag(field, FIXED_64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn fixed_32(&mut self, field: u64, value: u32) {
        self.tag(field, FIXED_32);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn message(&mut self, field: u64, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    fn attribute(&mut self, field: u64, name: &str, value: &Value) {
        self.message(field, |pair| {
            pair.bytes(1, name.as_bytes());
            pair.message(2, |any| match value {
                Value::Text(text) => any.bytes(1, text.as_bytes()),
                // Negative numbers are written as the unsigned ones of the same bits.
                Value::Whole(whole) => any.number(3, *whole as u64),
                Value::Number(number) => any.fixed_64(4, number.to_bits()),
            });
        });
    }

    fn span(&mut self, span: &Span) {
        self.bytes(1, &span.trace.to_be_bytes());
        self.bytes(2, &span.id.to_be_bytes());
        if let Some(parent) = span.parent {
            self.bytes(4, &parent.to_be_bytes());
        }
        self.bytes(5, span.name.as_bytes());
        self.number(
            6,
            match span.kind {
                Kind::Internal => 1,
                Kind::Client => 3,
                Kind::Producer => 4,
                Kind::Consumer => 5,
            },
        );
        self.fixed_64(7, nanos(span.start));
        self.fixed_64(8, nanos(span.end));
        for (name, value) in &span.attributes {
            self.attribute(9, name, value);
        }
        for Mark { at, name } in &span.marks {
            self.message(11, |event| {
                event.fixed_64(1, nanos(*at));
                event.bytes(2, name.as_bytes());
            });
        }
        if span.marks_dropped > 0 {
            self.number(12, span.marks_dropped.into());
        }
        for Link { trace, span } in &span.links {
            self.message(13, |link| {
                link.bytes(1, &trace.to_be_bytes());
                link.bytes(2, &span.to_be_bytes());
            });
        }
        if let Some(error) = span.error {
            self.message(15, |status| {
                status.bytes(2, error.as_bytes());
                status.number(3, 2);
            });
        }
        // It is recorded, as the flags of its trace say.
        self.fixed_32(16, 1);
    }
}

fn nanos(at: tasuki_core::Timestamp) -> u64 {
    u64::try_from(at.0).unwrap_or(0).saturating_mul(1_000_000)
}

enum Field<'m> {
    Number(u64),
    Bytes(&'m [u8]),
}

/// The fields of a message, or nothing if it is none.
fn fields(mut rest: &[u8]) -> Option<Vec<(u64, Field<'_>)>> {
    let mut all = Vec::new();
    while !rest.is_empty() {
        let tag = varint(&mut rest)?;
        let field = match tag & 7 {
            VARINT => Field::Number(varint(&mut rest)?),
            FIXED_64 => Field::Bytes(taken(&mut rest, 8)?),
            BYTES => {
                let length = usize::try_from(varint(&mut rest)?).ok()?;
                Field::Bytes(taken(&mut rest, length)?)
            }
            FIXED_32 => Field::Bytes(taken(&mut rest, 4)?),
            _ => return None,
        };
        all.push((tag >> 3, field));
    }
    Some(all)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for place in 0..10 {
        let byte = *taken(rest, 1)?.first()?;
        value |= u64::from(byte & 0x7f) << (place * 7);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn taken<'m>(rest: &mut &'m [u8], count: usize) -> Option<&'m [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_receiver_refused_is_read_and_nonsense_is_not() {
        assert_eq!(refused(&[]), Some((0, String::new())));
        let mut response = Message::default();
        response.message(1, |partial| {
            partial.number(1, 300);
            partial.bytes(2, b"too old");
        });
        assert_eq!(refused(&response.0), Some((300, "too old".into())));
        for bad in [&b"<html>"[..], &[0x0a, 0xff], &[0x0a, 0x05, 0x01], &[0xff; 11]] {
            assert_eq!(refused(bad), None, "{bad:?}");
        }
    }
}
