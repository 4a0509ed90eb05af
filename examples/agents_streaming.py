"""Streaming: an asynchronous program shows the tokens of two models while they are generated.

A writer and an editor are vertices; each asks its model and emits the tokens as they arrive. `stream` turns the events
of a run into an asynchronous iterator. The connection to the writer's model is lost once: the second attempt emits from
the beginning, which is the emission number 0. The models are scripted; replace them with your own.

    python examples/agents_streaming.py
"""

import asyncio

import gpu_pregel as gp

SCRIPTS = {
    "writer": "the graf has a million vertices",
    "editor": "The graph has a million vertices.",
}


async def model(name, attempt):
    """Simulate a language model that generates a token every few milliseconds."""
    for number, token in enumerate(SCRIPTS[name].split()):
        await asyncio.sleep(0.005)
        if (name, attempt, number) == ("writer", 1, 3):
            raise ConnectionError("the connection to the model was lost")
        yield token


async def compute(ctx):
    """Ask the model of this vertex, and send the answer on."""
    if ctx.vertex_id == "writer" or ctx.messages:
        tokens = []
        async for token in model(ctx.vertex_id, ctx.attempt):
            ctx.emit(token)
            tokens.append(token)
        ctx.value = " ".join(tokens)
        ctx.send_to_neighbors(ctx.value)
    ctx.vote_to_halt()


async def stream(vertices, **options):
    """Run, and yield each emission as an event."""
    loop, events = asyncio.get_running_loop(), asyncio.Queue()

    def observe(event):  # on a thread of the run
        loop.call_soon_threadsafe(events.put_nowait, event)

    run = asyncio.create_task(gp.agents.arun(vertices, compute, observer=observe, **options))
    run.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            if event.kind == "emit":
                yield event
        run.result()  # raises what has ended the run
    finally:
        run.cancel()


async def main():
    """Show the tokens of each vertex on a line of its own, and on another one after a failure."""
    vertices = [gp.agents.Vertex("writer", edges=["editor"]), gp.agents.Vertex("editor")]
    end = ""
    async for event in stream(vertices, retry=gp.agents.RetryPolicy(attempts=2, wait=0)):
        if event.facts["sequence"] == 0:
            print(f"{end}{event.vertex}:", end="")
        print(f" {event.facts['payload']}", end="", flush=True)
        end = "\n"
    print()


if __name__ == "__main__":
    asyncio.run(main())
