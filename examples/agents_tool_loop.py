"""A tool loop: an agent asks a model what to do, sends the calls that it wants to tools, and goes on with the results.

Agent and tools are vertices, calls and results are messages, all plain data. Shows how a failed tool is tried again
with the same input, `ctx.key` as an idempotency key, so that the second try orders nothing twice, and an interrupt, by
which a tool waits until a human agrees. Model, tools and human are scripted; put your own in their places.

    python examples/agents_tool_loop.py
"""

import gpu_pregel as gp


def model(transcript):
    """Stand for a language model: what it wants called, or its answer."""
    told = {entry["tool"]: entry["result"] for entry in transcript[1:]}
    if not told:
        return {"calls": [{"tool": "forecast", "argument": "Bergen"}, {"tool": "stock", "argument": "umbrella"}]}
    if "order" not in told:
        return {"calls": [{"tool": "order", "argument": "umbrella"}]}
    return {"answer": f"{told['forecast']}, {told['stock']}: {told['order']}."}


def agent(ctx):
    """Read what the tools say, and ask the model what comes next."""
    transcript = ctx.value["transcript"] + ctx.messages  # in the order of the senders' ids
    wanted = model(transcript)
    for call in wanted.get("calls", ()):
        ctx.send(call["tool"], {"for": ctx.vertex_id, "argument": call["argument"]})
    ctx.value = {"transcript": transcript, "answer": wanted.get("answer")}


SHOP = {}  # stands for a service elsewhere that knows which keys it has seen


def order(ctx, item, key):
    """Order something, if a human agrees; the shop's first reply is lost."""
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
    """Be the agent, or one of the tools, which wait for calls and answer each."""
    if ctx.vertex_id == "agent":
        agent(ctx)
    else:
        for number, call in enumerate(ctx.messages):
            result = TOOLS[ctx.vertex_id](ctx, call["argument"], f"{ctx.key}-{number}")
            ctx.send(call["for"], {"tool": ctx.vertex_id, "argument": call["argument"], "result": result})
    ctx.vote_to_halt()


def human(payload):
    """Stand for somebody who is asked before a tool does what cannot be undone."""
    print("a human is asked:", payload)
    return "yes"


def ask(question, human=human, workers=2, observer=()):
    """Run until the agent has an answer; ``human(payload)`` answers what tools want to know."""
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
    print("tries that failed:", sum(row["retries"] for row in result.trace))
