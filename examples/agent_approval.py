"""Human approval: an agent pays bills, and waits for a human before it pays a large one.

While it waits, it is only rows in a file: hours later, another process shows its questions and passes on the answers. A
human may approve a call, change its arguments, refuse it, or tell the model something else. Calls that need no consent,
and those that have been approved, are made once. The model is scripted.

    python examples/agent_approval.py
"""

import tempfile
from pathlib import Path

import gpu_pregel as gp
from gpu_pregel.workflows import Command, ScriptedModel, create_agent, messages, tool

BILLS = [("baker", 20), ("printer", 700), ("landlord", 1500), ("stranger", 9000)]


@tool(needs_consent=lambda arguments: arguments["amount"] > 100)
def pay(to: str, amount: int) -> str:
    """Pay a bill."""
    print(f"paid {amount} to the {to}")
    return f"{amount} paid"


def report(transcript, tools):
    """Simulate the answer of a model that has read what came of its calls."""
    return "; ".join(message["content"] for message in transcript if message["role"] == "tool")


def make_agent(path):
    """Return the agent; each process makes its own, and finds the thread in the file."""
    calls = [messages.tool_call("pay", {"to": to, "amount": amount}, id=to) for to, amount in BILLS]
    model = ScriptedModel([messages.assistant("I pay four bills.", calls), report])
    return create_agent(model, [pay], store=gp.SQLiteStore(path))


def decide(question):
    """Simulate a human."""
    return {
        "printer": True,
        "landlord": {"arguments": {"to": "landlord", "amount": 1400}},
        "stranger": "We never pay strangers. Report the bill.",
    }[question["arguments"]["to"]]


def main(path):
    """Start the agent, answer its questions one by one, and return its final state."""
    thread = {"configurable": {"thread_id": "bills of May"}}
    result = make_agent(path).invoke({"messages": "Pay the bills."}, thread)
    while questions := result.get("__interrupt__"):
        print("open questions:", ", ".join(one.value["arguments"]["to"] for one in questions))
        answer = {questions[0].id: decide(questions[0].value)}
        result = make_agent(path).invoke(Command(resume=answer), thread)
    return result


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(main(Path(folder) / "agents.db")["messages"][-1]["content"])
