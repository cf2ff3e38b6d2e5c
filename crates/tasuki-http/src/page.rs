// SPDX-License-Identifier: Apache-2.0
//! Pages for people: the API as one readable page made from the OpenAPI document, and the error
//! pages. No scripts, nothing fetched from elsewhere.

use std::fmt::Write;

use serde_json::Value;

use tasuki_protocol::Code;

use crate::openapi;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;\
    padding:0 1rem;color:#1a1a1a;background:#fff}h1{font-size:1.6rem}h2{margin-top:2.5rem;\
    border-bottom:1px solid #ddd}h3{margin:1.6rem 0 .2rem;font-size:1rem}code,pre{font:14px/1.45 \
    ui-monospace,monospace;background:#f5f5f5;border-radius:4px}code{padding:.1rem .3rem}\
    pre{padding:.8rem;overflow:auto}pre code{padding:0}.method{display:inline-block;min-width:3.2rem;\
    font-weight:600;color:#b3261e}.get{color:#1b5e20}table{border-collapse:collapse;width:100%;\
    font-size:15px}td,th{text-align:left;vertical-align:top;padding:.25rem .6rem .25rem 0;\
    border-bottom:1px solid #eee}details{margin:.3rem 0}summary{cursor:pointer;color:#555}\
    a{color:#0b57d0}@media(prefers-color-scheme:dark){body{background:#161616;color:#e6e6e6}\
    code,pre{background:#262626}h2,td,th{border-color:#333}a{color:#8ab4f8}.method{color:#ff8a80}\
    .get{color:#81c995}summary{color:#aaa}}";

fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title}</title><style>{STYLE}</style>{body}</html>"
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The whole API on one page.
pub(crate) fn api() -> String {
    let document = openapi::document();
    let mut body = String::new();
    let version = document["info"]["version"].as_str().unwrap_or_default();
    let _ = write!(
        body,
        "<h1>Tasuki {version}</h1><p>{}</p><p>Machine-readable: \
         <a href=\"/v1/openapi.json\">/v1/openapi.json</a></p>",
        escape(document["info"]["description"].as_str().unwrap_or_default())
    );
    let mut tag = "";
    for (path, operations) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in operations.as_object().into_iter().flatten() {
            let of = operation["tags"][0].as_str().unwrap_or_default();
            if of != tag {
                let _ = write!(body, "<h2>{}</h2>", escape(of));
                tag = of;
            }
            self::operation(&mut body, path, method, operation);
        }
    }
    body.push_str("<h2>types</h2>");
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        let _ = write!(body, "<h3 id=\"{name}\">{name}</h3>");
        fields(&mut body, schema);
    }
    body.push_str("<h2 id=\"errors\">errors</h2><table>");
    for code in Code::ALL {
        let status = code.status();
        let summary = code.page().lines().skip(1).find(|line| !line.is_empty()).unwrap_or_default();
        let _ = write!(
            body,
            "<tr><td><a href=\"/docs/errors/{code}\"><code>{code}</code></a><td>{status}<td>{}",
            inline(&escape(summary))
        );
    }
    body.push_str("</table>");
    page("Tasuki API", &body)
}

fn operation(body: &mut String, path: &str, method: &str, operation: &Value) {
    let class = if method == "get" { "method get" } else { "method" };
    let _ = write!(
        body,
        "<h3><span class=\"{class}\">{}</span> <code>{}</code></h3><div>{}</div>",
        method.to_uppercase(),
        escape(path),
        escape(operation["summary"].as_str().unwrap_or_default())
    );
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        if parameter["in"] == "query" {
            let _ = write!(
                body,
                "<div><code>?{}=</code> {}</div>",
                escape(parameter["name"].as_str().unwrap_or_default()),
                escape(parameter["description"].as_str().unwrap_or_default())
            );
        }
    }
    let request = &operation["requestBody"]["content"]["application/json"]["schema"];
    if !request.is_null() {
        let _ = write!(body, "<div>takes {}</div>", kind(request));
    }
    let errors: Vec<_> = operation["responses"].as_object().into_iter().flatten().collect();
    for (status, response) in &errors {
        if status.starts_with('2') {
            let schema = &response["content"]["application/json"]["schema"];
            let _ = write!(body, "<div>{status} {}</div>", kind(schema));
        }
    }
    body.push_str("<details><summary>errors</summary>");
    for (status, response) in errors.iter().filter(|(status, _)| !status.starts_with('2')) {
        let codes = response["description"].as_str().unwrap_or_default();
        let has_page = |code: &str| Code::named(code).is_some();
        let links = codes.split(", ").map(|code| match has_page(code) {
            true => format!("<a href=\"/docs/errors/{code}\">{code}</a>"),
            false => escape(code),
        });
        let _ = write!(body, "<div>{status} {}</div>", links.collect::<Vec<_>>().join(", "));
    }
    body.push_str("</details>");
}

fn fields(body: &mut String, schema: &Value) {
    if let Some(text) = schema["description"].as_str() {
        let _ = write!(body, "<div>{}</div>", inline(&escape(text)));
    }
    let Some(properties) = schema["properties"].as_object() else {
        let _ = write!(body, "<div>{}</div>", kind(schema));
        return;
    };
    let required: Vec<_> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    body.push_str("<table>");
    for (name, schema) in properties {
        let mark = if required.contains(&name.as_str()) { "" } else { "?" };
        let text = schema["description"].as_str().map(escape).unwrap_or_default();
        let kind = kind(schema);
        let _ = write!(body, "<tr><td><code>{name}{mark}</code><td>{kind}<td>{}", inline(&text));
    }
    body.push_str("</table>");
}

/// A schema in a few words.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return format!("<a href=\"#{name}\">{name}</a>");
    }
    for any in ["anyOf", "oneOf"] {
        if let Some(some) = schema[any].as_array() {
            let kinds: Vec<_> = some.iter().filter(|one| one["type"] != "null").map(kind).collect();
            return kinds.join(" or ");
        }
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<_> = words.iter().filter_map(Value::as_str).map(escape).collect();
        return words.join(" | ");
    }
    if let Some(word) = schema["const"].as_str() {
        return escape(word);
    }
    if schema["type"] == "array" {
        return format!("[{}]", kind(&schema["items"]));
    }
    let named = |schema: &Value| match &schema["type"] {
        Value::String(name) => Some(name.clone()),
        Value::Array(names) => {
            names.iter().filter_map(Value::as_str).find(|name| *name != "null").map(str::to_owned)
        }
        _ => None,
    };
    if let Some(only) = schema["properties"].as_object().filter(|members| members.len() == 1) {
        let (name, member) = only.iter().next().expect("there is one");
        return format!("{{{name}: {}}}", kind(member));
    }
    named(schema).unwrap_or_default()
}

/// An error page. Headings, paragraphs, lists and code are all that our pages use.
pub(crate) fn markdown(text: &str) -> String {
    let mut body = String::from("<p><a href=\"/docs#errors\">All errors</a></p>");
    let (mut in_code, mut in_list) = (false, false);
    for line in text.lines() {
        let item = !in_code && line.starts_with("- ");
        if item != in_list {
            body.push_str(if item { "<ul>" } else { "</ul>" });
            in_list = item;
        }
        if line.starts_with("```") {
            body.push_str(if in_code { "</code></pre>" } else { "<pre><code>" });
            in_code = !in_code;
        } else if in_code {
            let _ = writeln!(body, "{}", escape(line));
        } else if let Some(title) = line.strip_prefix("# ") {
            let _ = write!(body, "<h1>{}</h1>", escape(title));
        } else if let Some(title) = line.strip_prefix("## ") {
            let _ = write!(body, "<h2>{}</h2>", escape(title));
        } else if let Some(item) = line.strip_prefix("- ") {
            let _ = write!(body, "<li>{}</li>", inline(&escape(item)));
        } else if !line.is_empty() {
            let _ = write!(body, "<p>{}</p>", inline(&escape(line)));
        }
    }
    if in_list {
        body.push_str("</ul>");
    }
    let title = text.lines().next().and_then(|line| line.strip_prefix("# ")).unwrap_or_default();
    page(&format!("{}: Tasuki errors", escape(title)), &body)
}

/// Turns `words` in back ticks into code.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for (index, piece) in text.split('`').enumerate() {
        if index % 2 == 1 {
            let _ = write!(out, "<code>{piece}</code>");
        } else {
            out.push_str(piece);
        }
    }
    out
}
