//! The manual: pages of all commands, from the definitions of the command line and the texts in
//! `man/`.
//!
//! `man/sections` has what the command line does not say: examples, exit codes, files. Its parts
//! begin with `=== NAME`, and the part `*` has the sections of commands that lack one.

use crate::checker::FsckArguments;
use crate::helper::{MkfsArguments, MountArguments, UmountArguments};
use crate::message::{Failure, Result};
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Print the manual page, or write those of all commands
#[derive(Debug, clap::Args)]
pub(crate) struct ManArguments {
    /// Write the pages of all commands, of the helpers for mount(8), holdfast-volume(5) and
    /// holdfast(7) into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Pages that are not of a command.
const PAGES: [(&str, &str); 2] = [
    (
        "holdfast-volume.5",
        include_str!("../man/holdfast-volume.5"),
    ),
    ("holdfast.7", include_str!("../man/holdfast.7")),
];
/// The sections from `man/sections`, in their order on a page.
const ORDER: [&str; 5] = [
    "EXIT STATUS",
    "ENVIRONMENT",
    "FILES",
    "EXAMPLES",
    "SEE ALSO",
];
/// The date on the pages: of the release.
const DATE: &str = "2026-12-01";
/// The column of explanations in a list of options.
const COLUMN: usize = 22;

pub(crate) fn man(arguments: &ManArguments, command: Command) -> Result<()> {
    let Some(dir) = &arguments.out else {
        return Ok(io::stdout().write_all(&page(&command, "1")?)?);
    };
    write_pages(dir, command).map_err(|error| {
        let failure = Failure::new(format!("the pages cannot be written: {error}")).at(dir);
        failure.hint("name a directory that this user may write to, or one to be made")
    })
}

fn write_pages(dir: &Path, command: Command) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    write_command(dir, &command)?;
    for helper in [
        MountArguments::command(),
        UmountArguments::command(),
        MkfsArguments::command(),
        FsckArguments::command(),
    ] {
        // Helpers of mount(8) are in section 8 of the manual.
        let path = dir.join(format!("{}.8", helper.get_name()));
        fs::write(path, page(&helper, "8")?)?;
    }
    PAGES
        .iter()
        .try_for_each(|(name, text)| fs::write(dir.join(name), text))
}

/// Writes the page of a command, and of those below it.
fn write_command(dir: &Path, command: &Command) -> io::Result<()> {
    for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        write_command(dir, below)?;
    }
    let name = command.get_display_name().unwrap_or(command.get_name());
    fs::write(dir.join(format!("{name}.1")), page(command, "1")?)
}

fn page(command: &Command, section: &str) -> io::Result<Vec<u8>> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let man = Man::new(command.clone()).date(DATE).manual("Holdfast");
    let man = man
        .source(concat!("Holdfast ", env!("CARGO_PKG_VERSION")))
        .section(section);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    let mut text = ".SH DESCRIPTION\n".to_owned();
    if let Some(description) = command.get_long_about().or(command.get_about()) {
        paragraphs(&description.to_string(), &mut text);
    }
    let mut options = Vec::new();
    man.render_options_section(&mut options)?;
    text += &without_blanks(&String::from_utf8_lossy(&options));
    let extra = command.get_after_long_help().map(ToString::to_string);
    if let Some((list, notes)) = extra.as_deref().and_then(|text| text.split_once("\n\n")) {
        text += ".SH MOUNT OPTIONS\n";
        option_list(list, &mut text);
        text += ".SH NOTES\n";
        paragraphs(notes, &mut text);
    }
    page.extend(text.as_bytes());
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    for heading in ORDER {
        let body = named_section(name, heading).or_else(|| named_section("*", heading));
        if let Some(body) = body {
            write!(page, ".SH {heading}\n{body}")?;
        }
    }
    Ok(page)
}

/// The body of a section in the part of `man/sections` for a page.
fn named_section(page: &str, heading: &str) -> Option<&'static str> {
    let part = include_str!("../man/sections")
        .split("=== ")
        .find(|part| part.lines().next() == Some(page))?;
    let section = part.split(".SH ").skip(1);
    let body = section.filter_map(|section| section.split_once('\n'));
    body.into_iter()
        .find(|(name, _)| *name == heading)
        .map(|(_, body)| body)
}

/// The same with one line of space, or one break, in place of several.
fn without_blanks(text: &str) -> String {
    let mut out = String::new();
    let mut between = "";
    for line in text.lines() {
        match line.trim_end() {
            "" | "\\&" => between = ".sp\n",
            ".br" if between.is_empty() => between = ".br\n",
            ".br" => {}
            line => {
                out.push_str(between);
                out.push_str(line);
                out.push('\n');
                between = "";
            }
        }
    }
    out
}

/// Text in roff: paragraphs, and lines that are indented as they are.
fn paragraphs(text: &str, out: &mut String) {
    let mut is_verbatim = false;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let verbatim = line.starts_with("  ");
        if verbatim != is_verbatim {
            out.push_str(if verbatim {
                ".RS 4\n.nf\n"
            } else {
                ".fi\n.RE\n"
            });
            is_verbatim = verbatim;
        }
        if !line.trim().is_empty() {
            add(line, out);
        } else if lines.peek().is_some_and(|next| !next.starts_with("  ")) {
            out.push_str(".PP\n");
        }
    }
    if is_verbatim {
        out.push_str(".fi\n.RE\n");
    }
}

/// The list of options of a help text.
fn option_list(text: &str, out: &mut String) {
    for (names, help) in options_of(text) {
        // Writing to a string does not fail.
        let _ = writeln!(out, ".TP\n\\fB{}\\fR", escaped(&names));
        help.iter().for_each(|line| add(line, out));
    }
}

/// The options of a help text: their names, and the lines of their explanation.
fn options_of(text: &str) -> Vec<(String, Vec<&str>)> {
    let mut options: Vec<(String, Vec<&str>)> = Vec::new();
    for line in text.lines().skip(1) {
        let (name, help) = match line.split_at_checked(COLUMN) {
            Some((name, help)) if name.as_bytes().last() == Some(&b' ') => (name.trim(), help),
            _ => (line.trim(), ""),
        };
        // Names without an explanation go on in the next line.
        let open = options.pop_if(|(_, lines)| name.is_empty() || lines.is_empty());
        let (names, mut lines) = open.unwrap_or_default();
        lines.extend(Some(help).filter(|help| !help.is_empty()));
        options.push((format!("{names} {name}").trim().to_owned(), lines));
    }
    options
}

/// Adds a line of text.
fn add(line: &str, out: &mut String) {
    let line = escaped(line.trim());
    if line.starts_with(['.', '\'']) {
        out.push_str("\\&");
    }
    out.push_str(&line);
    out.push('\n');
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

#[cfg(test)]
mod tests {
    use super::*;

    mod reference;

    #[test]
    fn a_list_of_options_becomes_a_list() {
        let mut out = String::new();
        let text = "Options:
  size=N              most
                      bytes
  uid=USER, gid=GROUP owner
  a, b,
  c
                      as in mount";
        option_list(text, &mut out);
        let list = ".TP\n\\fBsize=N\\fR\nmost\nbytes\n.TP\n\\fBuid=USER, gid=GROUP\\fR\nowner\n\
                    .TP\n\\fBa, b, c\\fR\nas in mount\n";
        assert_eq!(out, list);
    }

    #[test]
    fn indented_lines_stay_as_they_are() {
        let mut out = String::new();
        paragraphs("One\ntwo.\n\nThree:\n\n  ls -l\n  .x\\\n\nFour", &mut out);
        let text = "One\ntwo.\n.PP\nThree:\n.RS 4\n.nf\nls \\-l\n\\&.x\\e\n.fi\n.RE\n.PP\nFour\n";
        assert_eq!(out, text);
    }
}
