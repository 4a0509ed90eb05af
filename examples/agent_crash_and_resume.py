"""A crash in the middle: an agent's process is killed, and another one resumes its run where it was.

Each superstep is on record before the next one begins. So the resumed run repeats neither a call of the model nor a
tool that has ended. Only the tool during which the process was killed is called again, with the same key, by which a
service recognises a repeated request. The model is scripted.

    python examples/agent_crash_and_resume.py
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import gpu_pregel as gp
from gpu_pregel.workflows import ScriptedModel, ToolContext, create_agent, messages, tool

THREAD = {"configurable": {"thread_id": "release 1.2"}}


def make_agent(folder):
    """Return the agent, which notes all that it does in a file."""

    def note(text):
        with open(folder / "notes.txt", "a") as file:
            file.write(f"{text}\n")

    @tool
    def run_tests() -> str:
        """Run the tests."""
        note("run_tests")
        return "all tests pass"

    @tool
    def publish(context: ToolContext) -> str:
        """Publish the release."""
        note(f"publish with {context.key}")
        if "--crash" in sys.argv:
            os.kill(os.getpid(), signal.SIGKILL)
        return "1.2 is published"

    @tool
    def announce() -> str:
        """Announce the release."""
        note("announce")
        return "announced"

    def answer(number, *calls):
        def speak(transcript, tools):
            note(f"answer {number}")
            return messages.assistant("" if calls else "Done.", [messages.tool_call(name) for name in calls])

        return speak

    model = ScriptedModel([answer(1, "run_tests"), answer(2, "publish"), answer(3, "announce"), answer(4)])
    return create_agent(model, [run_tests, publish, announce], store=gp.SQLiteStore(folder / "agents.db"))


def main(folder):
    """Let a process crash, resume its run, and return the notes of both."""
    crashed = subprocess.run([sys.executable, __file__, str(folder), "--crash"], check=False)
    before = (folder / "notes.txt").read_text().splitlines()
    agent = make_agent(folder)
    print(
        f"killed by {signal.Signals(-crashed.returncode).name}; left to do: {', '.join(agent.get_state(THREAD).next)}"
    )
    result = agent.invoke(None, THREAD)
    after = (folder / "notes.txt").read_text().splitlines()[len(before) :]
    print(result["messages"][-1]["content"])
    return before, after


if __name__ == "__main__":
    if "--crash" in sys.argv:
        make_agent(Path(sys.argv[1])).invoke({"messages": "Release 1.2."}, THREAD)
    else:
        with tempfile.TemporaryDirectory() as folder:
            before, after = main(Path(folder))
        print("before:", ", ".join(note.partition(" with")[0] for note in before))
        print("after: ", ", ".join(note.partition(" with")[0] for note in after))
        print("the same key:", before[-1] == after[0])
