"""sparkc-run --chat, on a pseudo-terminal and with plain lines.

usage: chat.py [PART ...]    (talk, editing, controls, interrupt, thinking, files,
                              lines, templates; default all)

talk        answers are those of the rendered prompts, turn after turn
editing     keys of the line editor, history, UTF-8, Ctrl-D
controls    control characters in an answer do not reach a terminal
interrupt   Ctrl-C clears a line, stops an answer, and never the program
thinking    reasoning is dim on a terminal, marked elsewhere, or hidden; a
            reasoning that does not end ends at the limit, with a note
files       /save, /reset and /load; files of another model, and no files
lines       without a terminal: a line is a message, notes go elsewhere
templates   an unknown template is refused, or overruled

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import termios
import time

from harness import BIN, GOLDEN, SPARK_TINY, compile_model, expect_error, run_parts, tool

BOS, EOS = "<｜start▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
SYSTEM = f"{BOS}<|System|>\nyou are a helpful assistant."
PROMPT = "> "
LIMIT = 12  # of an answer
CUT = "(the limit of tokens (-n) ended the answer)"
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """A program on a pseudo-terminal of 24 x 200, and what it has written."""

    def __init__(self, *command, seconds=60):
        self.deadline = time.monotonic() + seconds
        self.written = b""  # what until() has not gone past
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm", LC_ALL="C")
            os.environ.pop("EDITRC", None)
            os.environ["HOME"] = "/nonexistent"
            termios.tcsetwinsize(0, (24, 200))
            os.execv(command[0], [str(c) for c in command])

    def send(self, text):
        os.write(self.fd, text.encode() if isinstance(text, str) else text)

    def until(self, text):
        """What it writes up to `text`; ends the test if that does not come."""
        wanted = text.encode()
        while wanted not in self.written:
            left = self.deadline - time.monotonic()
            if left <= 0 or not self.read(left):
                sys.exit(f"FAILED no {text!r} after {self.written[-2000:]!r}")
        # Its prompt stands, and the editor reads keys.
        while text.endswith(PROMPT) and termios.tcgetattr(self.fd)[3] & termios.ICANON:
            if time.monotonic() > self.deadline:
                sys.exit("FAILED a prompt, and no editor")
            time.sleep(0.01)
        before, _, self.written = self.written.partition(wanted)
        return before.decode(errors="replace")

    def read(self, seconds):
        """Reads some; False at the end."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # the other side is closed
            return False
        self.written += data
        return bool(data)

    def wait(self):
        """Reads to the end; the exit status."""
        while self.read(max(0.0, self.deadline - time.monotonic())):
            if time.monotonic() > self.deadline:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                sys.exit(f"FAILED it does not end, after {self.written[-2000:]!r}")
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return status

    def say(self, text):
        """Types a line; what comes between its echo and the next prompt."""
        self.send(text + "\r")
        return self.answer()

    def answer(self):
        """What follows a line that was typed, or the greeting, but for CUT."""
        said = plain(self.until("\n" + PROMPT)).partition("\n")[2]
        return said.removesuffix("\n" + CUT)


def plain(text):
    return ESCAPES.sub("", text)


def chat(so, *options):
    terminal = Terminal(BIN / "sparkc-run", so, "--chat", *options)
    terminal.until(PROMPT)
    return terminal


def lines(so, text, *options):
    """(status, output, notes) of a chat without a terminal."""
    result = subprocess.run([BIN / "sparkc-run", so, "--chat", *map(str, options)],
                            input=text.encode(errors="surrogateescape"), capture_output=True,
                            timeout=120)
    return (result.returncode, result.stdout.decode(errors="replace"),
            result.stderr.decode(errors="replace"))


def tiny(folder):
    so = folder / "tiny.so"
    return so if so.exists() else compile_model(SPARK_TINY, so)


def changed(folder, name, change):
    """spark-tiny compiled with another tokenizer_config.json."""
    model = folder / name
    shutil.copytree(SPARK_TINY, model)
    path = model / "tokenizer_config.json"
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config))
    return compile_model(model, folder / f"{name}.so")


def continuation(so, prompt, n=LIMIT):
    """What greedy decoding makes of a rendered prompt."""
    out = tool("sparkc-run", so, "-p", prompt, "-n", n, "--temp", 0, "--no-echo")
    return out.stdout.decode().rstrip("\n")


QUESTIONS = ("The king went into the city.", "Dear Jane, I am so sorry",
             "My dear Miss Bates, the ball!")


def conversation(so, questions, system=""):
    """The answers to questions, each from its whole prompt."""
    prompt, answers = SYSTEM + system + EOS, []
    for question in questions:
        prompt += f"{BOS}<|User|>{question}{EOS}{BOS}<|Bot|></think>"
        answers.append(continuation(so, prompt))
        prompt += answers[-1] + EOS
    return answers


def talk(failures, folder):
    so = tiny(folder)
    cases = json.loads((GOLDEN / "spark-tiny" / "greedy.json").read_text())
    prompt = f"{SYSTEM}{EOS}{BOS}<|User|>{QUESTIONS[0]}{EOS}{BOS}<|Bot|></think>"
    failures.check(any(c["prompt"] == prompt for c in cases), "the first is a golden prompt")
    ends = [tool("sparkc-run", so, "-p", "The king", "-n", n, "--context", 16, "--temp", 0,
                 "--ignore-eos", "--no-echo").stdout for n in (-1, 100)]
    failures.check(ends[0] == ends[1] != b"", "-1 tokens: until the context is full")
    want = conversation(so, QUESTIONS)
    failures.check(len(set(want)) == len(want) and all(want), f"answers differ: {want}")
    terminal = chat(so, "-n", LIMIT)
    for question, answer in zip(QUESTIONS, want):
        got = terminal.say(question)
        failures.check(got == answer, f"{question!r} is answered {got!r}, not {answer!r}")
    stats = terminal.say("/stats")
    computed, kept = map(int, re.search(r"(\d+) tokens computed, (\d+) kept", stats).groups())
    failures.check(computed < 20 < kept, f"only what is new is computed: {stats!r}")
    failures.check(terminal.say("/reset") == "(nothing was said)", "/reset")
    failures.check(terminal.say(QUESTIONS[0]) == want[0], "after /reset the first answer again")
    terminal.send("/exit\r")
    failures.check(terminal.wait() == 0, "/exit ends with status 0")
    # A system text, and a first message from the command line.
    want = conversation(so, QUESTIONS[:2], "\n\nBe brief.")
    terminal = Terminal(BIN / "sparkc-run", so, "--chat", "--system", "Be brief.",
                        "-p", QUESTIONS[0], "-n", LIMIT)
    got = terminal.answer()
    failures.check(got == want[0], f"-p, with --system: {got!r}, not {want[0]!r}")
    failures.check(terminal.say(QUESTIONS[1]) == want[1], "and the next message")
    terminal.send("\x04")
    failures.check(terminal.wait() == 0, "Ctrl-D ends with status 0")


def editing(failures, folder):
    so = tiny(folder)
    terminal = chat(so, "-n", LIMIT)
    help_begins = "  /reset "

    def helps(keys, what):
        got = terminal.say(keys)
        failures.check(got.startswith(help_begins), f"{what}: {got[:40]!r}")

    helps("/help", "as typed")
    helps("/hrlp\x1b[D\x1b[D\x1b[D\x04e", "left, delete")
    helps("elp\x01/h", "to the begin of the line")
    helps("/hé世\x7f\x7felp", "backspace takes whole characters")
    helps("no\x15/help", "kill the line")
    helps("/hel\x1b[D\x05p", "to the end of the line")
    helps("\x1b[A", "the last line again")
    got = terminal.say("/nonsense")
    failures.check(got.startswith("no command /nonsense"), f"an unknown command: {got!r}")
    got = terminal.say("/save")
    failures.check(got == "/save needs the name of a file", got)
    before = terminal.say("/stats")
    terminal.send("\r")
    terminal.until(PROMPT)
    failures.check(terminal.say("/stats") == before, "an empty line says nothing")
    want = conversation(so, ["It was é\n世 a dark night,"])[0]
    terminal.send("It was é\\\r")
    terminal.until("\n| ")
    got = terminal.say("\u4e16 x\x7fa dark night,")
    failures.check(got == want, f"two lines are one message: {got!r}, not {want!r}")


# Any token is as likely as any other: answers do not end soon.
ANY_TOKENS = ("--temp", 1000000, "--top-p", 1, "--seed", 5)
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def controls(failures, folder):
    so = tiny(folder)
    _, sent, _ = lines(so, "Hello\n", "-n", 600, *ANY_TOKENS)
    found = CONTROL.findall(sent)
    failures.check(len(found) > 1, f"an answer with control characters: {found}")
    got = chat(so, "-n", 600, *ANY_TOKENS).say("Hello")
    want = CONTROL.sub(lambda c: "^" + chr(ord(c[0]) ^ 64), sent).removesuffix("\n")
    failures.check(got == want, f"a terminal is shown their names: {CONTROL.findall(got)}")


def interrupt(failures, folder):
    # More threads than a machine has: the answer is not written at once.
    terminal = chat(tiny(folder), "-t", 24, *ANY_TOKENS)
    terminal.send("half a line\x03")
    hint = plain(terminal.until("\n" + PROMPT))
    failures.check("/exit or Ctrl-D ends" in hint, f"Ctrl-C at the prompt: {hint!r}")
    stats = terminal.say("/stats")
    failures.check("conversation  0 tokens" in stats, f"clears the line: {stats!r}")
    for i in range(2):
        terminal.send("Call me Ishmael.\r")
        terminal.until("\n")  # the echo
        while len(terminal.written) < 40:
            terminal.read(1)
        terminal.send("\x03")
        answer = plain(terminal.until("\n" + PROMPT))
        failures.check(answer.endswith("\n(Ctrl-C ended the answer)"),
                       f"Ctrl-C stops the answer: {answer[-60:]!r}")
    stats = terminal.say("/stats")
    count = int(re.search(r"conversation  (\d+) tokens", stats)[1])
    failures.check(40 < count < 1000, f"the chat goes on: {stats!r}")
    terminal.send("\x04")
    failures.check(terminal.wait() == 0, "and ends as it should")


def thinking(failures, folder):
    so = tiny(folder)
    prompt = f"{SYSTEM}{EOS}{BOS}<|User|>{QUESTIONS[1]}{EOS}{BOS}<|Bot|><think>"
    thought = continuation(so, prompt, 6)
    note = "(the limit of tokens (-n) ended the reasoning: there is no answer)"
    terminal = chat(so, "--think", "-n", 6)
    terminal.send(QUESTIONS[1] + "\r")
    got = terminal.until("\n" + PROMPT)
    failures.check(f"\x1b[2m{thought}\x1b[0m\r\n{note}" in got, f"dim, then a note: {got!r}")
    # The turn was closed: what follows is an answer to another message.
    stats = terminal.say("/stats")
    terminal.send("\x04")
    failures.check(terminal.wait() == 0, f"{stats!r}")
    terminal = chat(so, "--think", "-n", 6, "--hide-think")
    terminal.send(QUESTIONS[1] + "\r")
    got = terminal.until("\n" + PROMPT)
    failures.check(thought.split()[0] not in plain(got).partition("\n")[2]
                   and "thinking ...\x1b[0m\r\x1b[K" in got and note in got, f"hidden: {got!r}")
    terminal.send("\x04")
    terminal.wait()
    for options, want in (((), f"<think>{thought}</think>\n"), (("--hide-think",), "")):
        status, out, notes = lines(so, QUESTIONS[1] + "\n", "--think", "-n", 6, *options)
        failures.check((status, out, notes) == (0, want, note + "\n"),
                       f"without a terminal {options}: {out!r}, {notes!r}")
    # The next turn is rendered as the template does, the reasoning closed.
    status, out, _ = lines(so, f"{QUESTIONS[1]}\n{QUESTIONS[0]}\n", "--think", "-n", 6)
    prompt += f"{thought}</think>{EOS}{BOS}<|User|>{QUESTIONS[0]}{EOS}{BOS}<|Bot|><think>"
    failures.check(out.endswith(f"<think>{continuation(so, prompt, 6)}</think>\n"),
                   f"the turn was closed: {out!r}")
    # Without thinking the published template's answer begins at once.
    status, out, _ = lines(so, QUESTIONS[0] + "\n", "--chat-template", "spark", "--no-think",
                           "-n", LIMIT)
    failures.check(out == conversation(so, QUESTIONS[:1])[0] + "\n", f"--no-think: {out!r}")


def files(failures, folder):
    so, saved = tiny(folder), folder / "saved chat"
    want = conversation(so, QUESTIONS)
    terminal = chat(so, "-n", LIMIT)
    terminal.say(QUESTIONS[0])
    count = re.search(r"conversation  (\d+)", terminal.say("/stats"))[1]
    failures.check(terminal.say(f"/save {saved} ") == f"({count} tokens saved)", "/save")
    failures.check(terminal.say(QUESTIONS[1]) == want[1], "a chat goes on after it was saved")
    terminal.say("/reset")
    failures.check(terminal.say(f"/load {saved}") == f"({count} tokens loaded)", "/load")
    failures.check(terminal.say(QUESTIONS[1]) == want[1], "after /load it goes on alike")
    got = terminal.say(f"/load {folder / 'none'}")
    failures.check(got.startswith("(not loaded: ") and "No such file" in got, got)
    got = terminal.say(f"/save {folder / 'no' / 'where'}")
    failures.check(got.startswith("(not saved: ") and "No such file" in got, got)
    failures.check(terminal.say(QUESTIONS[2]) == want[2], "what failed changed nothing")
    terminal.send("\x04")
    terminal.wait()
    # Another process; another context; another model.
    _, out, notes = lines(so, f"/load {saved}\n{QUESTIONS[1]}\n", "-n", LIMIT)
    failures.check(out == want[1] + "\n" and "tokens loaded" in notes,
                   f"in another process: {notes!r}")
    _, out, notes = lines(so, f"/load {saved}\n", "--context", 512)
    failures.check("not loaded" in notes and "512" in notes, f"in another context: {notes!r}")
    other = compile_model(SPARK_TINY, folder / "other.so", "--weights", "q8")
    _, out, notes = lines(other, f"/load {saved}\n{QUESTIONS[0]}\n", "-n", LIMIT)
    failures.check("not loaded" in notes and "another model" in notes and out != "",
                   f"in another model: {notes!r}")


def without_terminal(failures, folder):
    so = tiny(folder)
    want = conversation(so, QUESTIONS[:2])
    status, out, notes = lines(so, "\n".join(QUESTIONS[:2]) + "\n", "-n", LIMIT)
    failures.check((status, out) == (0, "".join(a + "\n" for a in want))
                   and not notes.replace(CUT + "\n", ""),
                   f"a line is a message: {status}, {out!r}, {notes!r}")
    status, out, _ = lines(so, f"\r\n{QUESTIONS[0]}\r\n  \n{QUESTIONS[1]}", "-n", LIMIT)
    failures.check((status, out) == (0, "".join(a + "\n" for a in want)),
                   "other ends of lines, empty lines, and no end")
    status, out, notes = lines(so, "/stats\n/exit\nx\n")
    failures.check(status == 0 and out == "" and "conversation  0 tokens" in notes,
                   f"commands: {out!r}, {notes!r}")
    status, out, notes = lines(so, "a\udcff\udc80\0b\ufffd\n//x\n", "-n", 3)
    failures.check(status == 0 and out, f"any bytes: {status}, {notes!r}")
    status, out, notes = lines(so, "a b c\n" * 3, "--context", 64)
    failures.check(status == 0 and "(the end of the context ended the answer)" in notes
                   and "(no room: " in notes, f"a full context: {notes!r}")
    failures.check(lines(so, "")[0] == 0, "no lines at all")
    result = subprocess.run(["sh", "-c", f"echo hi | '{BIN}/sparkc-run' '{so}' --chat >/dev/full"],
                            capture_output=True, timeout=60)
    failures.check(result.returncode == 1 and b"standard output: No space left" in result.stderr,
                   f"a full disk: {result.stderr!r}")
    for option in ("--file=x", "--plain", "--no-echo", "--ignore-eos", "--no-bos"):
        expect_error(failures, option, "sparkc-run", so, "--chat", option,
                     names=[option.partition("=")[0], "--chat"])
    expect_error(failures, "--system alone", "sparkc-run", so, "--system", "x", "-p", "x",
                 names=["--system", "--chat"])


def templates(failures, folder):
    def another(config):
        config["chat_template"] = config["chat_template"].replace("<|Bot|>", "<|bot|>")

    so = changed(folder, "another", another)
    expect_error(failures, "an unknown template", "sparkc-run", so, "--chat",
                 names=["another.weights", "chat template is not one that is known",
                        "--chat-template"])
    want = conversation(so, QUESTIONS[:1])[0]
    _, out, _ = lines(so, QUESTIONS[0] + "\n", "--chat-template", "spark-tiny", "-n", LIMIT)
    failures.check(out == want + "\n", f"overruled: {out!r}, not {want!r}")
    so = changed(folder, "none", lambda config: config.pop("chat_template"))
    expect_error(failures, "no template", "sparkc-run", so, "--chat",
                 names=["none.weights", "has no chat template", "--chat-template"])
    expect_error(failures, "no such template", "sparkc-run", so, "--chat", "--chat-template",
                 "x", names=["'x'", "spark"])
    expect_error(failures, "a model without a tokenizer", "sparkc-run",
                 compile_model(GOLDEN / "base", folder / "base.so"), "--chat",
                 names=["base.weights", "without a tokenizer"])


if __name__ == "__main__":
    sys.exit(run_parts({"talk": talk, "editing": editing, "controls": controls,
                        "interrupt": interrupt, "thinking": thinking, "files": files,
                        "lines": without_terminal, "templates": templates}, __doc__))
