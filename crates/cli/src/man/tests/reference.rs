//! The pages `commands.md` and `mount-options.md` of the book's reference, made from the
//! definitions of the command line and from `man/sections`.

use super::*;
use crate::Cli;
use clap::Arg;

/// If set, the test writes the pages.
const WRITE: &str = "HOLDFAST_WRITE_REFERENCE";
/// Begins a page.
const NOTICE: &str = "<!-- Made from the command line: HOLDFAST_WRITE_REFERENCE=1 \
                      cargo test -p holdfast-cli reference -->\n\n";

/// A help text as a cell of a table: its paragraphs become sentences.
fn cell(text: &str) -> String {
    let paragraphs: Vec<_> = text.split("\n\n").map(plain).collect();
    paragraphs
        .join(". ")
        .replace(".. ", ". ")
        .replace(":. ", ": ")
}

/// A text of one paragraph.
fn plain(text: &str) -> String {
    let mut code = false;
    let mut out = String::new();
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        for c in word.chars() {
            code ^= c == '`';
            // In code only the border of a cell needs a backslash.
            if c == '|' || !code && matches!(c, '<' | '*' | '\\') {
                out.push('\\');
            }
            out.push(c);
        }
    }
    out
}

/// The paragraphs of a help text; lines that are indented are code.
fn prose(text: &str, out: &mut String) {
    let kind = |line: &&str| (line.trim().is_empty(), line.starts_with("  "));
    let lines: Vec<_> = text.lines().collect();
    for block in lines.chunk_by(|a, b| kind(a) == kind(b)) {
        match kind(&block[0]) {
            (true, _) => {}
            (_, true) => {
                let lines: Vec<_> = block.iter().map(|line| &line[2..]).collect();
                *out += &format!("```text\n{}\n```\n\n", lines.join("\n"));
            }
            _ => *out += &format!("{}\n\n", wrapped(&plain(&block.join(" ")))),
        }
    }
}

/// Text in lines of at most 100 columns.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut width = 0;
    for word in text.split(' ') {
        let len = word.chars().count();
        if width > 0 {
            let fits = width + 1 + len <= 100;
            out.push(if fits { ' ' } else { '\n' });
            width = if fits { width + 1 } else { 0 };
        }
        out.push_str(word);
        width += len;
    }
    out
}

/// The row of an argument.
fn row(arg: &Arg) -> String {
    let short = arg.get_short().map(|short| format!("-{short}"));
    let mut name = match (short, arg.get_long()) {
        (Some(short), Some(_)) => format!("`{short}`, `{arg}`"),
        // clap writes the short name alone.
        _ => format!("`{arg}`"),
    };
    for alias in arg.get_visible_aliases().unwrap_or_default() {
        name += &format!(", `--{alias}`");
    }
    let help = arg.get_long_help().or(arg.get_help());
    let mut cell = cell(&help.expect("an explanation").to_string());
    let takes = arg.get_action().takes_values();
    let quoted = |words: Vec<String>| words.join(", ");
    let values = arg.get_possible_values().into_iter();
    let values = values.filter(|value| takes && !value.is_hide_set());
    let values = quoted(values.map(|it| format!("`{}`", it.get_name())).collect());
    if !values.is_empty() && !arg.is_hide_possible_values_set() {
        cell = format!("{}. Values: {values}", cell.trim_end_matches('.'));
    }
    let defaults = arg.get_default_values().iter().filter(|_| takes);
    let defaults = quoted(defaults.map(|it| format!("`{}`", it.display())).collect());
    if !defaults.is_empty() && !arg.is_hide_default_value_set() {
        cell = format!("{}. Default: {defaults}", cell.trim_end_matches('.'));
    }
    format!("| {} | {cell} |\n", name.replace('|', "\\|"))
}

/// A section of `man/sections` as rows: each entry has a code and a text.
fn codes(page: &str) -> Option<String> {
    let section = named_section(page, "EXIT STATUS")?;
    let entries = section.split(".TP\n.B ").skip(1);
    let rows = entries.map(|entry| {
        let (code, text) = entry.split_once('\n').expect("a text");
        format!("| {code} | {} |\n", plain(text))
    });
    Some(format!(
        "| exit code | means |\n|---|---|\n{}\n",
        rows.collect::<String>()
    ))
}

/// The section of a command, and those of the commands below it.
fn section(command: &Command, out: &mut String) {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let words = command.get_bin_name().unwrap_or(name);
    *out += &format!("## {words}\n\n");
    let about = command.get_long_about().or(command.get_about());
    prose(&about.expect("an explanation").to_string(), out);
    let usage = command.clone().render_usage().to_string();
    let usage: Vec<_> = usage
        .trim_start_matches("Usage:")
        .lines()
        .map(str::trim)
        .collect();
    *out += &format!("```text\n{}\n```\n\n", usage.join("\n"));
    let aliases: Vec<_> = command.get_visible_aliases().collect();
    if !aliases.is_empty() {
        *out += &format!("Also called `{}`.\n\n", aliases.join("`, `"));
    }
    let shown =
        |arg: &&Arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str());
    let rows: String = command.get_arguments().filter(shown).map(row).collect();
    if !rows.is_empty() {
        *out += &format!("| argument | is |\n|---|---|\n{rows}\n");
    }
    if command.get_after_long_help().is_some() {
        *out += "[Mount options](mount-options.md) has the options for `-o`.\n\n";
    }
    *out += &codes(name).unwrap_or_default();
    for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        section(below, out);
    }
}

fn commands() -> String {
    let mut out = format!("# Commands\n\n{NOTICE}");
    prose(
        "All commands of `holdfast`, and the helpers of mount(8), umount(8), mkfs(8) and fsck(8). \
         Each also has `--help`, and a page of the manual with examples and files.\n\n\
         A command that names no other exit codes has these:",
        &mut out,
    );
    out += &codes("*").expect("the codes");
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        section(below, &mut out);
    }
    for mut helper in [
        MountArguments::command(),
        UmountArguments::command(),
        MkfsArguments::command(),
        FsckArguments::command(),
    ] {
        helper.build();
        section(&helper, &mut out);
    }
    out
}

fn mount_options() -> String {
    let mut out = format!("# Mount options\n\n{NOTICE}");
    prose(
        "The options of `holdfast mount -o`, of `mount -t holdfast -o` and of lines of fstab. An \
         option either has its effect or is refused with the reason. [Mounting](mount.md) says \
         which of them are used most.",
        &mut out,
    );
    out += "| option | effect |\n|---|---|\n";
    let command = Cli::command();
    let mount = command.find_subcommand("mount").expect("the command");
    let help = mount.get_after_long_help().expect("a list").to_string();
    let (list, notes) = help.split_once("\n\n").expect("notes");
    for (names, help) in options_of(list) {
        let names = names.replace(", ", "`, `");
        out += &format!("| `{names}` | {} |\n", plain(&help.join(" ")));
    }
    out += "\n";
    prose(notes, &mut out);
    out
}

#[test]
fn the_reference_is_that_of_this_command_line() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/reference");
    for (name, page) in [
        ("commands.md", commands()),
        ("mount-options.md", mount_options()),
    ] {
        let page = format!("{}\n", page.trim_end());
        let path = folder.join(name);
        if std::env::var_os(WRITE).is_some() {
            fs::write(&path, &page).expect("a page is written");
        }
        let is = fs::read_to_string(&path).unwrap_or_default();
        let differs = is
            .lines()
            .zip(page.lines())
            .position(|(is, made)| is != made);
        let line = differs.map_or("the length differs".to_owned(), |at| {
            format!("line {}", at + 1)
        });
        let remedy = format!("{WRITE}=1 cargo test -p holdfast-cli reference");
        assert!(is == page, "{}: {line}: run {remedy}", path.display());
    }
}
