"""``create_agent``: the loop of a model and its tools, as a state graph of the nodes llm_call and execute_tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypedDict

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, ModelError, ToolError
from gpu_pregel.host.agents.encoded_context import is_observed
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.host.arguments import check_flag, check_integer
from gpu_pregel.workflows import messages as chat
from gpu_pregel.workflows.answer_formats import AnswerFormat
from gpu_pregel.workflows.commands import END, START, Command, Send
from gpu_pregel.workflows.consent import consent
from gpu_pregel.workflows.messages import Message, ToolCall
from gpu_pregel.workflows.model_calls import acall_model, check_model
from gpu_pregel.workflows.reducers import add_messages
from gpu_pregel.workflows.state_graph import StateGraph
from gpu_pregel.workflows.tools import Tool, ToolContext, as_tools

if TYPE_CHECKING:
    from gpu_pregel.host.stores.store import Store
    from gpu_pregel.workflows.compiled_graph import CompiledGraph
    from gpu_pregel.workflows.node_context import NodeContext

LLM_CALL, EXECUTE_TOOLS = "llm_call", "execute_tools"
COMPLETED, RUNNING, LIMITED, INVALID = "completed", "running", "max_iterations", "invalid_response"
_FORMAT_ADVISER = "response_format"
"""Name of the "user" that tells a model what is wrong with its answer."""
_MISTAKES = 1
"""Answers in a wrong format after which the model is asked again."""
_MODEL_RETRY = RetryPolicy(attempts=2, wait=0.5, exceptions=(ModelError, ConnectionError, TimeoutError))

SystemPrompt = str | Callable[[dict[str, Any]], str]


class AgentState(TypedDict):
    """The state of an agent.

    Attributes
    ----------
    messages : list of dict
        The transcript, without the system prompt.
    status : str
        Why the agent has ended: "completed", "max_iterations", or "invalid_response" if even the second answer was not
        in the requested format; "running" before.
    structured_response : data
        The answer in the requested format, or None.
    """

    messages: Annotated[list[Any], add_messages]
    status: NotRequired[str]
    structured_response: NotRequired[Any]


def create_agent(
    model: Callable[..., Any],
    tools: Iterable[Tool | Callable[..., Any]] = (),
    *,
    system_prompt: SystemPrompt | None = None,
    max_iterations: int = 10,
    response_format: Any = None,
    store: Store | None = None,
    workers: int = 0,
    retry: RetryPolicy | None = _MODEL_RETRY,
    timeout: float | None = None,
    streams: bool = True,
    nested: bool = False,
    name: str = "agent",
) -> CompiledGraph:
    """Return an agent: a model that may call tools, and is asked again with their results until it answers.

    Tools that the model calls at once run side by side. The model is told of their failures, unknown names and wrong
    arguments.

    Parameters
    ----------
    model : callable
        ``model(messages, tools)`` returns a text or a message, and may be ``async`` or a generator of tokens; for
        example a :class:`ChatModel`.
    tools : iterable of Tool or function
        See :func:`tool`. Before a tool with ``needs_consent``, the run is held with the question ``{"tool": name,
        "arguments": arguments, "call_id": id}``. The answers are True; False; ``{"arguments": {...}}``, to call it with
        others; or a text, which the model is told instead of a result.
    system_prompt : str, or callable
        The first message that the model receives, which is not part of the state; or a function of the state that
        returns it.
    max_iterations : int
        Calls of the model for one message of the user. If it still asks for tools then, they are not run, and the
        status is "max_iterations".
    response_format : dict, dataclass, pydantic model or other type, optional
        The format of the answer: a JSON schema or a type, of which the answer is an instance. An answer in another
        format is refused once.
    store : SQLiteStore, PostgresStore or MemoryStore, optional
        Keeps threads: conversations that are continued by later calls with the same ``config={"configurable":
        {"thread_id": ...}}``, and runs to be resumed.
    workers : int
        Number of worker processes, as for :meth:`StateGraph.compile`.
    retry : RetryPolicy, optional
        Attempts at a call of the model. Default: two, if the first one fails by a :class:`ModelError` or the
        connection.
    timeout : float, optional
        Seconds of an attempt at a call of the model. Those of tools are their own.
    streams : bool
        Whether tokens are streamed, in the mode "messages", if the model can.
    nested : bool
        Whether the agent is to be a node of another graph, or a tool of another agent (see :func:`agent_tool`), whose
        store then holds it while it asks a human.
    name : str

    Returns
    -------
    CompiledGraph
        ``invoke({"messages": "Hello!"})`` returns a dict with ``messages``, ``status`` and, with a format,
        ``structured_response``.

    Raises
    ------
    ArgumentError, ArgumentTypeError

    Examples
    --------
    >>> from gpu_pregel.workflows import ScriptedModel, create_agent, messages, tool
    >>> @tool
    ... def add(a: int, b: int) -> int:
    ...     '''Add two numbers.'''
    ...     return a + b
    >>> call = messages.tool_call("add", {"a": 1, "b": 2})
    >>> agent = create_agent(ScriptedModel([messages.assistant("", [call]), "It is 3."]), [add])
    >>> result = agent.invoke({"messages": "1 + 2?"})
    >>> [message["content"] for message in result["messages"]], result["status"]
    (['1 + 2?', '', '3', 'It is 3.'], 'completed')
    """
    known = as_tools(tools)
    check_model(model)
    check_integer("max_iterations", max_iterations, 1, 1 << 31)
    if system_prompt is not None and not isinstance(system_prompt, str) and not callable(system_prompt):
        raise ArgumentTypeError(f"system_prompt must be a string or a function of the state, not {system_prompt!r:.80}")
    form = None if response_format is None else AnswerFormat(response_format)
    if form is not None and form.name in known:
        raise ArgumentError(f"no tool may have the name {form.name!r} beside response_format: pass name= to it")
    asking = [one.name for one in known.values() if one.needs_consent is not False]
    if asking and store is None and not check_flag("nested", nested):
        raise ArgumentError(
            f"the tool {asking[0]!r} needs consent, for which runs are held in a store: pass store=, or nested=True if "
            "another graph runs this agent"
        )
    nodes = AgentNodes(model, known, system_prompt, max_iterations, form, check_flag("streams", streams))
    graph = StateGraph(AgentState)
    graph.add_node(LLM_CALL, nodes.llm_call, retry=retry, timeout=timeout, destinations=[EXECUTE_TOOLS, LLM_CALL, END])
    attempts = 1 + max((one.retry.attempts for one in known.values()), default=1)
    graph.add_node(EXECUTE_TOOLS, nodes.execute_tools, retry=RetryPolicy(attempts=attempts, wait=0, exceptions=()))
    graph.add_edge(START, LLM_CALL).add_edge(EXECUTE_TOOLS, LLM_CALL)
    # A superstep of the tools follows each of the model, and one for a second try may come at the end.
    return graph.compile(store=store, workers=workers, max_supersteps=2 * max_iterations + 2, name=name)


class AgentNodes:
    """The nodes of an agent. Both are ``async``; ordinary models and tools are called on threads."""

    def __init__(
        self,
        model: Any,
        tools: dict[str, Tool],
        system_prompt: SystemPrompt | None,
        max_iterations: int,
        form: AnswerFormat | None,
        streams: bool,
    ) -> None:
        self._model, self._tools, self._form, self._streams = model, tools, form, streams
        self._system_prompt, self._max_iterations = system_prompt, max_iterations
        described: Sequence[Tool | AnswerFormat] = [*tools.values(), *([form] if form else [])]
        self._descriptions = [one.description_for_models for one in described]

    async def llm_call(self, state: dict[str, Any], context: NodeContext) -> Command:
        """Ask the model, and decide what follows."""
        transcript = chat.as_messages(state.get("messages", ()), 'the state\'s "messages"')
        if not transcript:
            raise ArgumentError('the agent has no message to answer: pass {"messages": "..."}')
        emit = context.emit if self._streams and is_observed(context._context) else None
        answer = await acall_model(self._model, self._prompt(state, transcript), self._descriptions, emit)
        if answer.get("id") in {message.get("id") for message in transcript}:
            # Some servers give all their answers the same id, by which the new message would replace an old one.
            answer = {key: value for key, value in answer.items() if key != "id"}
        iteration = 1 + _iterations(transcript)
        is_last = iteration >= self._max_iterations
        calls = answer.get("tool_calls") or []
        if self._form is not None and (not calls or any(call["name"] == self._form.name for call in calls)):
            return self._conclude(self._form, answer, calls, is_last or _mistakes(transcript) >= _MISTAKES)
        if not calls:
            return Command(self._update([answer], COMPLETED))
        if is_last:
            text = f"This was not run, as the agent has reached its limit of {self._max_iterations} iterations."
            refused = [chat.tool_answer(text, call, failed=True) for call in calls]
            return Command(self._update([answer, *refused], LIMITED))
        return Command(self._update([answer], RUNNING), goto=[Send(EXECUTE_TOOLS, call) for call in calls])

    def _prompt(self, state: dict[str, Any], transcript: list[Message]) -> list[Message]:
        prompt = self._system_prompt(state) if callable(self._system_prompt) else self._system_prompt
        return transcript if prompt is None else [chat.system(prompt), *transcript]

    def _conclude(self, form: AnswerFormat, answer: Message, calls: list[ToolCall], is_last: bool) -> Command:
        """Take an answer in the requested format, or ask for it again."""
        given = [call for call in calls if call["name"] == form.name]
        rest = [chat.tool_answer("This was not run, as the answer was given.", one, failed=True) for one in calls]
        try:
            if not given:
                value = form.read_text(chat.text_of(answer))
                return Command(self._update([answer], COMPLETED, value))
            if given[0].get("invalid_arguments") is not None:
                raise ToolError(f"the arguments are not a JSON object: {given[0]['invalid_arguments']:.500}")
            value = form.read(given[0]["arguments"])
        except ToolError as error:
            problem = str(error)
        else:
            told = dict(zip((call["id"] for call in calls), rest, strict=True))
            told[given[0]["id"]] = chat.tool_answer("Accepted.", given[0])
            return Command(self._update([answer, *told.values()], COMPLETED, value))
        again = f"The answer is not in the requested format: {problem}. Call the tool {form.name} with the answer."
        advice = [chat.tool_answer(again, call, failed=True) for call in calls]
        if not calls and not is_last:
            advice = [chat.user(again, name=_FORMAT_ADVISER)]
        update = self._update([answer, *advice], INVALID if is_last else RUNNING)
        return Command(update, goto=() if is_last else LLM_CALL)

    def _update(self, messages: list[Message], status: str, value: Any = None) -> dict[str, Any]:
        """Return the update of the state; in a thread, it also replaces the answer to an earlier question."""
        update = {"messages": messages, "status": status}
        return update if self._form is None else {**update, "structured_response": value}

    async def execute_tools(self, call: ToolCall, context: NodeContext) -> dict[str, Any]:
        """Answer one call of the model."""
        tool = self._tools.get(call["name"])
        if tool is None:
            names = ", ".join(self._tools) or "there are none"
            text = f"There is no tool {call['name']!r}. The tools are: {names}."
            return {"messages": [chat.tool_answer(text, call, failed=True)]}
        agreed = consent(tool, call, context)
        if isinstance(agreed, str):
            return {"messages": [chat.tool_answer(agreed, call, failed=True)]}
        if context.attempt > tool.retry.attempts:
            # What a tool raises is told to the model at once: only the end of its process leaves another attempt.
            ended = ToolError("the process in which it ran has ended; it may have begun its work")
            return {"messages": [tool.failure(call, ended)]}
        # Each call is a task of its own, so that the task's key identifies the call.
        known = ToolContext(call["id"], context.key, emit=context.write, config=context.config)
        return {"messages": [await tool.arun(agreed, known)]}


def _turn(transcript: list[Message]) -> list[Message]:
    """Return what has come since the user's last message."""
    for number in range(len(transcript), 0, -1):
        message = transcript[number - 1]
        if message["role"] not in ("assistant", "tool") and message.get("name") != _FORMAT_ADVISER:
            return transcript[number:]
    return transcript


def _iterations(transcript: list[Message]) -> int:
    """Return how often the model has answered since the user's last message."""
    return sum(message["role"] == "assistant" for message in _turn(transcript))


def _mistakes(transcript: list[Message]) -> int:
    """Return how many answers in a wrong format the model has given since the user's last message."""
    return sum(
        message.get("name") == _FORMAT_ADVISER
        or (message.get("name") == AnswerFormat.name and message.get("status") == "error")
        for message in _turn(transcript)
    )
