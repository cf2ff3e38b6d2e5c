// SPDX-License-Identifier: Apache-2.0
//! `tasuki analyze`: what agents do as a population, and what of it is unusual. From the log of a
//! broker or from a file that was exported; nothing else is asked.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::Args;
use tasuki_core::Timestamp;
use tasuki_core::population::{
    Baseline, Collected, FALSE_ALARMS, Finding, Report, Settings, study,
};

use crate::client::Connect;
use crate::exit::{Exit, Failure};
use crate::output::{Facts, Output, printable, progress, table};

#[derive(Args)]
pub(crate) struct Analyze {
    #[command(flatten)]
    connect: Connect,
    /// Read an exported file instead of asking a broker
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// What counts as usual begins here, such as 2026-11-15T12:00:00Z; without it, with the log
    #[arg(long, value_name = "TIME", requires = "baseline_until")]
    baseline_from: Option<Timestamp>,
    /// What counts as usual ends here; without it, after the first third of the handoffs
    #[arg(long, value_name = "TIME")]
    baseline_until: Option<Timestamp>,
    /// Compare agents with each other alone, and with nothing that was before
    #[arg(long, conflicts_with = "baseline_until")]
    no_baseline: bool,
    /// An agent or a capability whose users come back to the same agent; may be given again
    #[arg(long, value_name = "NAME")]
    sticky: Vec<String>,
    /// A member of payloads that is a number to compare between agents; may be given again
    #[arg(long, value_name = "MEMBER")]
    monitor: Vec<String>,
    /// How often an honest population may raise any alarm, as a share
    #[arg(long, value_name = "SHARE", default_value_t = FALSE_ALARMS)]
    false_alarms: f64,
    /// The seed of the permutations
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl Analyze {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let settings = self.settings()?;
        let mut collected = Collected::new(&self.sticky, &self.monitor);
        match &self.file {
            Some(path) => file(path, &mut collected)?,
            None => broker(&self.connect, &mut collected).await?,
        }
        output.found(&study(&collected, &settings), text)?;
        Ok(Exit::Done)
    }

    fn settings(&self) -> Result<Settings, Failure> {
        let usage = |message: String, hint: &'static str| Failure::new(Exit::Usage, message, hint);
        if !(FALSE_ALARMS..=0.5).contains(&self.false_alarms) {
            let message =
                format!("--false-alarms is {}, expected {FALSE_ALARMS} to 0.5", self.false_alarms);
            return Err(usage(message, "give a share: 0.05 is one honest population in twenty"));
        }
        let from = self.baseline_from.unwrap_or(Timestamp(i64::MIN));
        let baseline = match self.baseline_until {
            Some(until) if until <= from => {
                let message = "--baseline-until is not after --baseline-from".to_owned();
                return Err(usage(message, "give a span in which everything was as it should be"));
            }
            Some(until) => Baseline::Between(from, until),
            None if self.no_baseline => Baseline::None,
            None => Baseline::FirstThird,
        };
        Ok(Settings { baseline, false_alarm_rate: self.false_alarms, seed: self.seed })
    }
}

fn file(path: &Path, collected: &mut Collected) -> anyhow::Result<()> {
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
    let hint = "name a file that `tasuki audit export` wrote";
    let (bytes, file) = opened.map_err(|error| {
        let message = format!("cannot read {}: {error}", path.display());
        Failure::new(Exit::NotFound, message, hint)
            .next(format!("tasuki audit export --to {}", path.display()))
    })?;
    let bar = progress("reading", Some(bytes));
    let (mut reader, mut line, mut number) = (BufReader::new(file), String::new(), 0_u64);
    loop {
        line.clear();
        number += 1;
        let wrong = |what: &str| {
            let message = format!("line {number} of {} {what}", path.display());
            Failure::new(Exit::Refused, message, hint)
        };
        let read = reader.read_line(&mut line).map_err(|error| wrong(&error.to_string()))?;
        if read == 0 {
            break;
        }
        bar.inc(read as u64);
        collected.line(line.trim_end()).map_err(|error| wrong(&error.to_string()))?;
    }
    bar.finish_and_clear();
    Ok(())
}

async fn broker(connect: &Connect, collected: &mut Collected) -> anyhow::Result<()> {
    let client = connect.client()?;
    let bar = progress("reading", None);
    let mut stream = client.stream("/v1/audit/export", &[]).await?;
    let (mut rest, mut lines) = (Vec::new(), 0);
    while let Some(piece) = stream.chunk().await.map_err(|error| client.unreachable(&error))? {
        rest.extend_from_slice(&piece);
        let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') else { continue };
        let later = rest.split_off(end + 1);
        let whole = std::mem::replace(&mut rest, later);
        for line in String::from_utf8_lossy(&whole).lines() {
            collected.line(line)?;
            lines += 1;
        }
        bar.set_position(lines);
    }
    bar.finish_and_clear();
    Ok(())
}

fn text(report: &Report) -> String {
    let span = |span: tasuki_core::population::Span| {
        format!("{} handoffs, {} to {}", span.handoffs, span.from, span.until)
    };
    let baseline = match (report.baseline, report.baseline_chosen) {
        (None, _) => "none: agents are compared with each other alone".to_owned(),
        (Some(of), true) => span(of),
        (Some(of), false) => format!("{} (the first third; nobody chose another)", span(of)),
    };
    let mut text = Facts::default()
        .with(
            "read",
            format!(
                "{} events, {} handoffs, {} agents",
                report.events, report.handoffs, report.agents
            ),
        )
        .with("baseline", baseline)
        .with("looked at", span(report.current))
        .with("false alarms", format!("at most {} of honest populations", report.false_alarm_rate))
        .text();
    for bound in &report.bounds_reached {
        text += &format!("note: {bound}\n");
    }
    let rows = report.looked.iter().map(|it| {
        let found = report.findings.iter().filter(|finding| finding.kind == it.kind).count();
        let found = it
            .unjudged
            .clone()
            .map_or_else(|| found.to_string(), |why| format!("not judged: {why}"));
        [it.kind.to_string(), it.n.to_string(), it.tested.to_string(), found]
    });
    text.push('\n');
    text += &table(["looked for", "n", "tested", "found"], rows);
    for finding in &report.findings {
        text += &described(finding);
    }
    for group in &report.groups {
        text += &format!("\n{} links {}\n", group.kind, printable(&group.agents.join(", ")));
    }
    text
}

fn described(finding: &Finding) -> String {
    let mut text = format!(
        "\n{}: {}\n  effect {:.2} {}, n {}, p {:.3}",
        finding.kind,
        printable(&finding.summary),
        finding.effect,
        finding.unit,
        finding.n,
        finding.p
    );
    if let Some(since) = finding.since {
        text += &format!(", since {since}");
    }
    text.push('\n');
    if let Some(last) = finding.behind.last() {
        let ids: Vec<_> = finding.behind.iter().map(|it| it.handoff_id.to_string()).collect();
        text += &format!(
            "  behind it: {}\n  look: tasuki explain {}\n",
            ids.join(" "),
            last.handoff_id
        );
    }
    text
}
