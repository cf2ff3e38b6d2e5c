// SPDX-License-Identifier: Apache-2.0
//! What is measured, as text in the form that is asked for.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures::FutureExt;
use futures::future::BoxFuture;
use tasuki_core::meter::exposition::Form;
use tasuki_engine::Desk;
use tasuki_engine::operations::{Entry, Given};
use tasuki_front::Failed;
use tasuki_protocol::Nothing;

pub(crate) fn text(
    entry: &'static Entry,
    desk: Desk,
    parts: &Parts,
) -> BoxFuture<'static, Result<Response, Failed>> {
    let given = Given::Query(parts.uri.query().unwrap_or_default());
    let asked = entry.asked::<Nothing>(given, |_| Ok(()));
    let accept = parts.headers.get(header::ACCEPT).and_then(|it| it.to_str().ok());
    let form = Form::accepted(accept.unwrap_or_default());
    async move {
        asked?;
        entry.may_ask(&desk)?;
        let mut response = Response::new(Body::from(desk.metrics(form).await?));
        let kind = HeaderValue::from_static(form.content_type());
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        Ok(response)
    }
    .boxed()
}
