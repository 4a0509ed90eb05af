"""A supervisor with two sub-agents: a researcher, who has tools of its own, and a writer, who answers in a format.

A sub-agent is a tool of the supervisor. Its run is a part of the supervisor's: it is kept in the same store, and its
tokens are streamed with those of the supervisor. The models are scripted.

    python examples/agent_supervisor.py
"""

from dataclasses import dataclass

from gpu_pregel.workflows import ScriptedModel, agent_tool, create_agent, messages, tool

LIBRARY = {
    "Euler": "In 1736, Euler asked for a walk over the seven bridges of Königsberg.",
    "Pregel": "In 2010, Pregel let vertices compute in supersteps; it is named after the river of these bridges.",
}


@dataclass
class Paragraph:
    """What the writer returns."""

    title: str
    text: str


@tool
def look_up(keyword: str) -> str:
    """Return what the library has on a keyword."""
    return LIBRARY[keyword]


def call(name, **arguments):
    """Return a message in which a model calls a tool."""
    return messages.assistant("", [messages.tool_call(name, arguments)])


def last_results(transcript):
    """Return the results of all tools that the model has called."""
    return " ".join(message["content"] for message in transcript if message["role"] == "tool")


RESEARCHER = ScriptedModel(
    [
        messages.assistant(
            "I look up both.",
            [messages.tool_call("look_up", {"keyword": word}, id=word) for word in LIBRARY],
        ),
        lambda transcript, tools: last_results(transcript),
    ]
)
WRITER = ScriptedModel([lambda transcript, tools: call("respond", title="Bridges", text=transcript[-1]["content"])])
SUPERVISOR = ScriptedModel(
    [
        call("researcher", task="What connects Euler and Pregel?"),
        lambda transcript, tools: call("writer", task=last_results(transcript)),
        lambda transcript, tools: f"Here you are: {transcript[-1]['content']}",
    ]
)


def make_supervisor(**options):
    """Return the supervisor."""
    researcher = create_agent(RESEARCHER, [look_up], system_prompt="Find facts.", name="researcher")
    writer = create_agent(WRITER, system_prompt="Write well.", response_format=Paragraph, name="writer")
    team = [agent_tool(researcher, "Finds facts in the library."), agent_tool(writer, "Writes a paragraph from facts.")]
    return create_agent(SUPERVISOR, team, system_prompt="Delegate.", name="supervisor", **options)


if __name__ == "__main__":
    result = make_supervisor().invoke({"messages": "Write a paragraph on Euler and Pregel."})
    for message in result["messages"]:
        calls = ", ".join(one["name"] for one in message.get("tool_calls", ()))
        print(f"{message['role']}: {message['content'] or f'calls {calls}'}")
