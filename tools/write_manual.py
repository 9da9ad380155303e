#!/usr/bin/env python3
"""Writes the man pages and the completions of the program.

    tools/write_manual.py PROGRAM FOLDER

FOLDER gets what belongs below /usr/share: man/man1/penstock.1.gz and a page for
each verb, man/man5/penstock-job.5.gz, and completions for bash, zsh and fish.
Everything comes from the program itself: the help of each verb, and the JSON
Schema of the job file. SOURCE_DATE_EPOCH sets the date of the pages.
"""
import dataclasses
import datetime
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys

OPTION = re.compile(r"^ {2}(\S.*?)(?: {2,}(\S.*))?$")
TAKES = re.compile(r"^(?P<flags>\S+?)(?: (?P<kind>[A-Z]+\S*)(?P<rest>.*))?$")
SECTIONS = {"Options", "Positionals", "Subcommands"}


@dataclasses.dataclass
class Option:
    """An option, an argument or a verb, as the help lists it."""
    name: str          # "--json", or "-h,--help", or "job", or "train"
    takes: str         # "TEXT", "INT:>= 1=4030"; empty: it takes nothing
    says: str

    @property
    def flags(self):
        return self.name.split(",")

    @property
    def choices(self):
        found = re.search(r"\{([^}]*)\}", self.takes)
        return found[1].split(",") if found else []


@dataclasses.dataclass
class Help:
    verb: str          # "", "train", "cache why"
    says: str
    usage: str
    listed: dict       # of SECTIONS: a list of Option
    footer: str


class Program:
    def __init__(self, path):
        self.path = path

    def output(self, *arguments):
        return subprocess.run([self.path, *arguments], check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    def help(self, verb=""):
        return read_help(verb, self.output(*verb.split(), "--help"))

    def pages(self, verb=""):
        """The help of a verb and of all below it."""
        page = self.help(verb)
        below = [f"{verb} {option.name}".strip()
                 for option in page.listed.get("Subcommands", [])]
        return [page] + [each for name in below for each in self.pages(name)]


def read_help(verb, text):
    lines = text.splitlines()
    usage = next(line for line in lines if line.startswith("Usage: "))
    listed, footer, section = {}, [], ""
    for line in lines[lines.index(usage) + 1:]:
        if line.rstrip(":") in SECTIONS:
            section = line.rstrip(":")
            listed[section] = []
        elif section and line.startswith(" " * 10):
            listed[section][-1].says += " " + line.strip()
        elif section and (found := OPTION.match(line)):
            parts = TAKES.match(found[1])
            takes = (parts["kind"] or "") + (parts["rest"] or "")
            listed[section].append(Option(parts["flags"], takes,
                                          found[2] or ""))
        elif line:
            section = ""
            footer.append(line)
    return Help(verb, lines[0], usage.removeprefix("Usage: "), listed,
                "\n".join(footer))


def roff(text):
    """Text as a man page has it: hyphens to be copied, nothing a request."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def day():
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    at = datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc) \
        if seconds else datetime.datetime.now(datetime.timezone.utc)
    return at.strftime("%Y-%m-%d")


def heading(name, number, version):
    return (f'.TH {roff(name.upper())} {number} {day()} "{roff(version)}" '
            f'"User Commands"\n')


def man_list(title, options):
    text = f".SH {title}\n"
    for option in options:
        names = ", ".join(rf"\fB{roff(flag)}\fR" for flag in option.flags)
        takes = rf" \fI{roff(option.takes)}\fR" if option.takes else ""
        text += f".TP\n{names}{takes}\n{roff(option.says)}\n"
    return text


def example_text(footer):
    """The examples of a footer, and its exit codes as a section of their own."""
    examples, _, codes = footer.partition("Exit codes: ")
    examples = re.sub(r"^Examples?: ?", "", examples).strip("\n")
    text = ""
    if examples:
        lines = "\n".join(line.strip() for line in examples.splitlines())
        text += f".SH EXAMPLES\n.nf\n{roff(lines)}\n.fi\n"
    if codes:
        text += f".SH EXIT STATUS\n{roff(codes)}\n"
    return text


def man_page(page, version, others):
    name = "-".join(["penstock", *page.verb.split()])
    text = heading(name, 1, version)
    text += f".SH NAME\n{roff(name)} \\- {roff(page.says)}\n"
    text += f".SH SYNOPSIS\n{roff(page.usage)}\n"
    for section, title in (("Positionals", "ARGUMENTS"),
                           ("Options", "OPTIONS"), ("Subcommands", "COMMANDS")):
        if page.listed.get(section):
            text += man_list(title, page.listed[section])
    text += example_text(page.footer)
    also = [f"{other}(1)" for other in others if other != name]
    also.append("penstock-job(5)")
    text += ".SH SEE ALSO\n" + ",\n".join(
        rf"\fB{roff(other[:-3])}\fR{other[-3:]}" for other in also) + "\n"
    return name, text


def shown_rule(schema):
    """'an integer from 1 to 64, default 8', as a setting's schema says."""
    kinds = schema.get("type", "")
    if "enum" in schema:
        kinds = "one of " + ", ".join(map(json.dumps, schema["enum"]))
    elif "const" in schema:
        kinds = json.dumps(schema["const"])
    parts = [kinds] if kinds else []
    if "minimum" in schema:
        parts.append(f">= {schema['minimum']:.12g}")
    if "maximum" in schema:
        parts.append(f"<= {schema['maximum']:.12g}")
    if "default" in schema:
        parts.append(f"default {json.dumps(schema['default'])}")
    return ", ".join(parts)


def settings_of(schema, path=""):
    """(path, schema) of each setting, as deep as objects go."""
    for name, inside in schema.get("properties", {}).items():
        below = f"{path}.{name}".lstrip(".")
        if shown_rule(inside) or "description" in inside:
            yield below, inside
        yield from settings_of(inside, below)
    for choice in ("oneOf", "anyOf", "allOf"):
        for inside in schema.get(choice, []):
            yield from settings_of(inside, path)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from settings_of(schema["additionalProperties"], path + ".NAME")


def job_page(schema, version):
    text = heading("penstock-job", 5, version).replace("User Commands",
                                                       "File Formats")
    text += (".SH NAME\npenstock\\-job \\- the job file of penstock\n"
             ".SH DESCRIPTION\nA job file is a JSON object. It names where "
             "rows are read, which fields become tensors, how batches are "
             "made, and what is trained on them. An unknown key is an error. "
             "\\fBpenstock schema\\fR prints the JSON Schema that this page "
             "is made from.\n.SH SETTINGS\n")
    for section, inside in schema["properties"].items():
        seen = {section: (shown_rule(inside), inside.get("description", ""))}
        for path, setting in settings_of(inside, section):
            rule, says = seen.get(path, ("", ""))
            seen[path] = (rule or shown_rule(setting),
                          says or setting.get("description", ""))
        text += f".SS {roff(section)}\n"
        for path, (rule, says) in seen.items():
            says = "; ".join(part for part in (says, rule) if part)
            text += rf".TP{chr(10)}\fB{roff(path)}\fR" + f"\n{roff(says)}\n" \
                if says else ""
    return text + ".SH SEE ALSO\n\\fBpenstock\\fR(1)\n"


def flags_of(page):
    return [flag for option in page.listed.get("Options", [])
            for flag in option.flags]


def verbs_of(page):
    return [option.name for option in page.listed.get("Subcommands", [])]


def bash(pages):
    cases = "".join(
        f'    "{page.verb}") words="{" ".join(verbs_of(page) + flags_of(page))}"'
        " ;;\n" for page in pages)
    choices = sorted({(flag, " ".join(option.choices))
                      for page in pages
                      for option in page.listed.get("Options", [])
                      for flag in option.flags if option.choices})
    values = "".join(f'    {flag}) words="{words}" ;;\n'
                     for flag, words in choices)
    nested = "|".join(page.verb for page in pages
                      if page.verb and verbs_of(page))
    return f"""# bash completion of penstock
_penstock() {{
  local now=${{COMP_WORDS[COMP_CWORD]}} last=${{COMP_WORDS[COMP_CWORD-1]}}
  local verb="" words=""
  [ "$COMP_CWORD" -le 1 ] || verb=${{COMP_WORDS[1]}}
  case "$verb" in
    {nested}) [ "$COMP_CWORD" -le 2 ] || verb="$verb ${{COMP_WORDS[2]}}" ;;
  esac
  case "$last" in
{values}    *) case "$verb" in
{cases}    esac ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$now")
}}
complete -o default -F _penstock penstock
"""


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh_word(option):
    """An option as _arguments takes it."""
    says = re.sub(r"([\[\]:])", r"\\\1", option.says)
    value = ""
    if option.takes:
        what = f"({' '.join(option.choices)})" if option.choices else "_files"
        value = f":value:{what}"
    return [quoted(f"{flag}[{says}]{value}") for flag in option.flags]


def zsh(pages):
    functions = ""
    for page in pages:
        words = [word for option in page.listed.get("Options", [])
                 for word in zsh_word(option)]
        name = "_penstock" + "".join("_" + part.replace("-", "_")
                                     for part in page.verb.split())
        body = f"  _arguments -S {' '.join(words)}"
        verbs = page.listed.get("Subcommands", [])
        if verbs:
            listed = " ".join(
                quoted(verb.name + ":" + verb.says.replace(":", "\\:"))
                for verb in verbs)
            body = f"""  local -a verbs=({listed})
  {body.strip()} '1:command:->verb' '*::arguments:->rest' && return
  case $state in
    verb) _describe command verbs ;;
    rest) (( $+functions[{name}_${{words[1]//-/_}}] )) &&
      {name}_${{words[1]//-/_}} ;;
  esac"""
            body = "  local state line context\n  typeset -A opt_args\n" + body
        else:
            body += " '*:file:_files'"
        functions += f"{name}() {{\n{body}\n}}\n"
    return f"#compdef penstock\n{functions}_penstock \"$@\"\n"


def fish(pages):
    text = "# fish completion of penstock\n"
    for page in pages:
        words = page.verb.split()
        seen = " and ".join(f"__fish_seen_subcommand_from {word}"
                            for word in words)
        seen = seen.replace(" and ", "; and ") or "__fish_use_subcommand"
        for verb in page.listed.get("Subcommands", []):
            under = f"{seen}; and not __fish_seen_subcommand_from " \
                f"{' '.join(verbs_of(page))}" if words else seen
            text += f"complete -c penstock -f -n {quoted(under)} " \
                f"-a {verb.name} -d {quoted(verb.says)}\n"
        for option in page.listed.get("Options", []):
            flags = " ".join(
                f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
                for flag in option.flags)
            takes = " -r" if option.takes else ""
            if option.choices:
                takes = f" -x -a {quoted(' '.join(option.choices))}"
            text += f"complete -c penstock -n {quoted(seen)} {flags}{takes} " \
                f"-d {quoted(option.says)}\n"
    return text


def main(path, folder):
    program = Program(path)
    version = program.output("--version").strip()
    pages = program.pages()
    names = ["-".join(["penstock", *page.verb.split()]) for page in pages]
    files = {"bash-completion/completions/penstock": bash(pages),
             "zsh/vendor-completions/_penstock": zsh(pages),
             "fish/vendor_completions.d/penstock.fish": fish(pages),
             "man/man5/penstock-job.5.gz":
                 job_page(json.loads(program.output("schema")), version)}
    for page in pages:
        name, text = man_page(page, version, names)
        files[f"man/man1/{name}.1.gz"] = text
    for name, text in files.items():
        file = pathlib.Path(folder) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        data = text.encode()
        file.write_bytes(gzip.compress(data, mtime=0)
                         if file.suffix == ".gz" else data)
    print(f"{len(files)} files in {folder}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
