"""Map-reduce with a model: 1,000 reviews are read side by side, and what was found is summed up product by product.

`Send` starts one task for each document, with the document as its input; updates of all of them are folded by the
reducer of the key, in the order of sending. A second `Send` starts one task for each product. Now and then the model
refuses a request: only that task is tried again. Model and reviews are scripted; replace them with your own.

    python examples/agent_map_reduce.py
"""

import random
from typing import Annotated, TypedDict

from gpu_pregel.agents import RetryPolicy
from gpu_pregel.workflows import END, START, Send, StateGraph, append, increment

PRODUCTS = ("kettle", "lamp", "radio", "toaster")
FAULTS = ("is too loud", "broke after a week", "arrived late", "smells of plastic")
PRAISE = ("works as it should", "looks lovely", "was a bargain")


class ReviewState(TypedDict):
    """The state of the whole run."""

    reviews: list[str]
    findings: Annotated[list[dict], append]
    summaries: Annotated[list[str], append]
    requests: Annotated[int, increment]
    report: str


class Review(TypedDict):
    """The input of a task that reads."""

    number: int
    text: str


class Complaints(TypedDict):
    """The input of a task that sums up."""

    product: str
    findings: list[dict]


def make_reviews(count=1000, seed=7):
    """Make reviews, the same in every run."""
    numbers = random.Random(seed)
    reviews = []
    for _ in range(count):
        product, is_bad = numbers.choice(PRODUCTS), numbers.random() < 0.4
        opinion = numbers.choice(FAULTS if is_bad else PRAISE)
        reviews.append(f"I bought a {product} in {numbers.choice(('May', 'June'))}. It {opinion}.")
    return reviews


def model(task, text):
    """Simulate a language model."""
    if task == "read":
        product = next(one for one in PRODUCTS if one in text)
        return {"product": product, "fault": next((one for one in FAULTS if one in text), None)}
    faults = [line for line in text.splitlines() if line != "None"]
    worst = max(sorted(set(faults)), key=faults.count)
    return f"{len(faults)} complaints in {len(text.splitlines())} reviews; {faults.count(worst)} say that it {worst}"


def read(review: Review, context):
    """Let the model read a review."""
    if context.attempt == 1 and review["number"] % 200 == 13:
        raise ConnectionError("429: too many requests")
    return {"findings": model("read", review["text"]), "requests": context.attempt}


def sum_up(group: Complaints):
    """Let the model sum up what was found about a product."""
    text = "\n".join(str(finding["fault"]) for finding in group["findings"])
    return {"summaries": f"{group['product']}: {model('sum up', text)}", "requests": 1}


def report(state):
    """Put the summaries together."""
    return {"report": "\n".join(state["summaries"])}


def each_review(state):
    """Start a task for each review."""
    return [Send("read", {"number": number, "text": text}) for number, text in enumerate(state["reviews"])]


def each_product(state):
    """Start a task for each product."""
    groups = {}
    for finding in state["findings"]:
        groups.setdefault(finding["product"], []).append(finding)
    return [Send("sum_up", {"product": one, "findings": groups[one]}) for one in sorted(groups)]


def build(**options):
    """Return the graph, compiled."""
    graph = StateGraph(ReviewState).add_node(read).add_node("collect", lambda state: None).add_node(sum_up)
    graph.add_node("report_all", report)
    graph.add_conditional_edges(START, each_review, ["read"]).add_edge("read", "collect")
    graph.add_conditional_edges("collect", each_product, ["sum_up"]).add_edge("sum_up", "report_all")
    graph.add_edge("report_all", END)
    return graph.compile(retry=RetryPolicy(attempts=3, wait=0.01), **options)


if __name__ == "__main__":
    result = build().invoke({"reviews": make_reviews()})
    print(result["report"])
    print("requests:", result["requests"])
