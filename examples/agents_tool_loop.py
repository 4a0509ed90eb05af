"""A tool loop: an agent asks a model what to do, sends tool calls as messages, and continues with the results.

Agent and tools are vertices, calls and results are messages of plain data. Shows how a failed tool is retried with the
same input, `ctx.key` as an idempotency key, so that the second attempt does not order twice, and an interrupt, with
which a tool waits for a human's approval. Model, tools and human are scripted; replace them with your own.

    python examples/agents_tool_loop.py
"""

import gpu_pregel as gp


def model(transcript):
    """Simulate a language model: return tool calls, or an answer."""
    results = {entry["tool"]: entry["result"] for entry in transcript[1:]}
    if not results:
        return {"calls": [{"tool": "forecast", "argument": "Bergen"}, {"tool": "stock", "argument": "umbrella"}]}
    if "order" not in results:
        return {"calls": [{"tool": "order", "argument": "umbrella"}]}
    return {"answer": f"{results['forecast']}, {results['stock']}: {results['order']}."}


def agent(ctx):
    """Read the results of tools, and ask the model for the next step."""
    transcript = ctx.value["transcript"] + ctx.messages  # in the order of the senders' ids
    reply = model(transcript)
    for call in reply.get("calls", ()):
        ctx.send(call["tool"], {"for": ctx.vertex_id, "argument": call["argument"]})
    ctx.value = {"transcript": transcript, "answer": reply.get("answer")}


SHOP = {}  # simulates a remote service that remembers the keys it has seen


def order(ctx, item, key):
    """Order an item if a human approves; the first reply of the shop is lost."""
    if ctx.interrupt({"tool": "order", "argument": item}) != "yes":
        return "a human refused"
    number = SHOP.setdefault(key, len(SHOP) + 1)
    if ctx.attempt == 1:
        raise ConnectionError("the shop did not reply")
    return f"order {number} is placed"


TOOLS = {
    "forecast": lambda ctx, city, key: f"rain in {city}",
    "stock": lambda ctx, item, key: f"3 {item}s in stock",
    "order": order,
}


def compute(ctx):
    """Compute the agent, or a tool, which answers each call."""
    if ctx.vertex_id == "agent":
        agent(ctx)
    else:
        for number, call in enumerate(ctx.messages):
            result = TOOLS[ctx.vertex_id](ctx, call["argument"], f"{ctx.key}-{number}")
            ctx.send(call["for"], {"tool": ctx.vertex_id, "argument": call["argument"], "result": result})
    ctx.vote_to_halt()


def human(payload):
    """Simulate a human who approves irreversible actions."""
    print("a human is asked:", payload)
    return "yes"


def ask(question, human=human, workers=2, observer=()):
    """Run until the agent has an answer; ``human(payload)`` answers interrupts of tools."""
    vertices = [gp.agents.Vertex(name, halted=True) for name in TOOLS]
    vertices.append(gp.agents.Vertex("agent", {"transcript": [question], "answer": None}))
    retry = gp.agents.RetryPolicy(attempts=3, wait=0.05)
    with gp.agents.start(vertices, compute, workers=workers, retry=retry, observer=observer) as agents:
        while agents.step() or agents.status == "interrupted":
            for vertex, payload in agents.result().interrupts.items():
                agents.answer(vertex, human(payload))
        return agents.result()


if __name__ == "__main__":
    result = ask("Do I need an umbrella?")
    print(result.values["agent"]["answer"])
    print("retries:", sum(row["retries"] for row in result.trace))
