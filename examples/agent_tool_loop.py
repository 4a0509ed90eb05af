"""A tool loop: a model calls tools, reads their results, and is asked again until it answers.

Tools are functions; what they raise is told to the model. The shop loses its first reply: the tool is called again with
the same key, so that nothing is ordered twice. Before it orders, a human is asked. Tools and prompt read the caller's
context, and a callback follows the model. The model is scripted; replace it with `ChatModel("gpt-5")`, say.

    python examples/agent_tool_loop.py
"""

import gpu_pregel as gp
from gpu_pregel.workflows import Command, ScriptedModel, ToolContext, create_agent, messages, tool


@tool
async def forecast(city: str) -> str:
    """Return the weather of tomorrow."""
    return f"rain in {city}"


@tool
def stock(item: str) -> str:
    """Return how many of an item are in stock."""
    return f"3 {item}s in stock"


SHOP = {}  # simulates a remote service that remembers the keys it has seen


@tool(needs_consent=True, timeout=10, retry=gp.agents.RetryPolicy(attempts=3, wait=0.05))
def order(item: str, context: ToolContext) -> str:
    """Order an item.

    Parameters
    ----------
    item : str
        Its name in the shop.
    """
    number = SHOP.setdefault(context.key, len(SHOP) + 1)
    if context.attempt == 1:
        raise ConnectionError("the shop did not reply")
    return f"order {number} of the {item} is placed for {context.context['customer']}"


def summary(transcript, tools):
    """Simulate the last answer of a model, which has read the results of its tools."""
    results = [message["content"] for message in transcript if message["role"] == "tool"]
    return f"{results[0]}, {results[1]}: {results[2]}."


MODEL = ScriptedModel(
    [
        messages.assistant(
            "Let me see.",
            [messages.tool_call("forecast", {"city": "Bergen"}), messages.tool_call("stock", {"item": "umbrella"})],
        ),
        messages.assistant("I order one.", [messages.tool_call("order", {"item": "umbrella"})]),
        summary,
    ]
)


def human(question):
    """Simulate a human who approves irreversible actions."""
    print("a human is asked:", question["tool"], question["arguments"])
    return True


def follow(event):
    """Print what the model calls; ``event["meta"]`` is the state's ``callback_meta``."""
    tools = [call["name"] for call in event["message"].get("tool_calls", ())]
    print(f"{event['meta']['request']}: iteration {event['iteration']} calls {', '.join(tools) or 'nothing'}")


def ask(question, human=human, **options):
    """Return the final state of the agent; ``human(question)`` answers the questions of tools."""
    agent = create_agent(
        MODEL,
        [forecast, stock, order],
        system_prompt="You serve {customer}.",
        callbacks={"model": follow},
        store=gp.MemoryStore(),
        **options,
    )
    thread = {"configurable": {"thread_id": "1"}}
    given = {"messages": question, "context": {"customer": "Ada"}, "callback_meta": {"request": "r1"}}
    result = agent.invoke(given, thread)
    while "__interrupt__" in result:
        answers = {one.id: human(one.value) for one in result["__interrupt__"]}
        result = agent.invoke(Command(resume=answers), thread)
    return result


if __name__ == "__main__":
    for message in ask("Do I need an umbrella?")["messages"]:
        print(f"{message['role']}: {message['content']}")
