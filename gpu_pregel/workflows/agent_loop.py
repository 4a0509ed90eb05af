"""``create_agent``: the loop of a model and its tools, as a state graph of the nodes llm_call and execute_tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, ModelError, ToolError
from gpu_pregel.host.agents.encoded_context import is_observed
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.host.agents.workers.error_texts import text_of
from gpu_pregel.host.arguments import check_flag, check_integer
from gpu_pregel.workflows import messages as chat
from gpu_pregel.workflows.agent_callbacks import Callbacks
from gpu_pregel.workflows.agent_state import (
    DEFAULTS,
    FORMAT_ADVISER,
    NO_MESSAGE,
    OWN,
    AgentMemory,
    AgentState,
    Trim,
    as_update,
    check_fields,
    check_system_prompt,
    check_trim,
    filled_in,
    names_of_tools,
    new_messages,
    replacement,
    trimmed,
    turn_of,
)
from gpu_pregel.workflows.answer_formats import AnswerFormat
from gpu_pregel.workflows.commands import END, START, Command, Send
from gpu_pregel.workflows.messages import Message, ToolCall
from gpu_pregel.workflows.model_calls import acall_model, check_model
from gpu_pregel.workflows.state_graph import StateGraph
from gpu_pregel.workflows.tools import Tool, ToolContext, as_tools

if TYPE_CHECKING:
    from gpu_pregel.host.stores.store import Store
    from gpu_pregel.workflows.compiled_graph import CompiledGraph
    from gpu_pregel.workflows.node_context import NodeContext


from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpu_pregel.workflows.node_context import NodeContext

LLM_CALL, EXECUTE_TOOLS = "llm_call", "execute_tools"
COMPLETED, RUNNING, LIMITED, INVALID = "completed", "running", "max_iterations", "invalid_response"
_MISTAKES = 1
"""Answers in a wrong format after which the model is asked again."""
_MODEL_RETRY = RetryPolicy(attempts=2, wait=0.5, exceptions=(ModelError, ConnectionError, TimeoutError))

SystemPrompt = str | Callable[[dict[str, Any]], str]


def create_agent(
    model: Callable[..., Any],
    tools: Iterable[Tool | Callable[..., Any]] = (),
    *,
    system_prompt: SystemPrompt | None = None,
    max_iterations: int = 10,
    response_format: Any = None,
    trim: Trim = None,
    callbacks: Mapping[str, Callable[[dict[str, Any]], Any]] | None = None,
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
        The first message that the model receives, in which ``{name}`` stands for an item of the state's context; or a
        function of the state that returns it.
    max_iterations : int
        Calls of the model for one message of the user. If it still asks for tools then, they are not run, and the
        status is "max_iterations".
    response_format : dict, dataclass, pydantic model or other type, optional
        The format of the answer: a JSON schema or a type, of which the answer is an instance. An answer in another
        format is refused once.
    trim : int or callable, optional
        The model gets, and ``messages`` keeps, at most this many messages, and more only to begin with a message of the
        user and to keep the last one; or what ``trim(messages)`` returns. ``full_messages`` keeps all.
    callbacks : mapping from str to callable, optional
        Functions by name. Those that the state's ``callbacks`` names for an event, or that have its name, are called
        with a dict: "event", "context" and "meta" (``callback_meta``), and

        - "model", after an answer: "iteration" and "message";
        - "tool", after a call: "iteration", "call" and "message";
        - "step", after each: "step", as in the scratchpad;
        - "error": "where" ("model" or "tool"), "iteration", "attempt" and "error", and "call" of a tool.

        They may be ``async``, are called again by a repeated attempt, and what they raise fails it.
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
        store then holds it while it asks a human. A graph shares ``messages`` and ``context``, ``callbacks`` and
        ``callback_meta`` with it, not the other fields, and gets all its new messages.
    name : str

    Returns
    -------
    CompiledGraph
        ``invoke({"messages": "Hello!"})`` returns an :class:`AgentState`. The input may have its other fields, too,
        such as ``context``.

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
    >>> [step["step"] for step in result["scratchpad"]], result["iteration"]
    (['model', 'tool', 'model'], 2)
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
    prompt, text = (system_prompt, "") if callable(system_prompt) else (None, system_prompt or "")
    described = [one.description_for_models for one in known.values()]
    defaults = {"system_prompt": text, "max_iterations": max_iterations, "tools": described}
    functions = Callbacks(callbacks)
    streaming = check_flag("streams", streams)
    nodes = AgentNodes(model, known, defaults, prompt, form, check_trim(trim), functions, streaming)
    graph = StateGraph(AgentMemory, input=AgentState, output=AgentState)
    graph.own, graph.as_update = OWN, as_update
    graph.check = partial(check_fields, tools=known, callbacks=functions)
    graph.add_node(LLM_CALL, nodes.llm_call, retry=retry, timeout=timeout, destinations=[EXECUTE_TOOLS, LLM_CALL, END])
    attempts = 1 + max((one.retry.attempts for one in known.values()), default=1)
    graph.add_node(EXECUTE_TOOLS, nodes.execute_tools, retry=RetryPolicy(attempts=attempts, wait=0, exceptions=()))
    graph.add_edge(START, LLM_CALL).add_edge(EXECUTE_TOOLS, LLM_CALL)
    # A superstep of the tools follows each of the model, and one for a second try may come at the end; the limit is
    # that of the state, which may be another one than max_iterations.
    return graph.compile(store=store, workers=workers, max_supersteps=1 << 33, name=name)


class AgentNodes:
    """The nodes of an agent. Both are ``async``; ordinary models, tools and callbacks are called on threads."""

    def __init__(
        self,
        model: Any,
        tools: dict[str, Tool],
        defaults: dict[str, Any],
        prompt: Callable[[dict[str, Any]], str] | None,
        form: AnswerFormat | None,
        trim: Trim,
        callbacks: Callbacks,
        streams: bool,
    ) -> None:
        """``defaults`` are the fields of the state that the caller may set; ``prompt`` makes the system prompt."""
        self._model, self._tools, self._form, self._streams = model, tools, form, streams
        self._defaults, self._prompt, self._trim, self._callbacks = defaults, prompt, trim, callbacks

    async def llm_call(self, state: dict[str, Any], context: NodeContext) -> Command:
        """Ask the model, and decide what follows."""
        transcript = chat.as_messages(state.get("messages", ()), 'the state\'s "messages"')
        if not transcript:
            raise ArgumentError(NO_MESSAGE)
        turn = _Turn(state, transcript, self._defaults, self._trim)
        turn.update["callbacks"] = self._callbacks.chosen(turn.state)
        emit = context.emit if self._streams and is_observed(context._context) else None
        try:
            answer = await acall_model(self._model, self._prompted(turn), self._described(turn), emit)
        except Exception as error:
            facts = {"where": "model", "iteration": turn.iteration, "attempt": context.attempt, "error": text_of(error)}
            await self._callbacks.call("error", turn.state, **facts)
            raise
        if answer.get("id") in turn.ids:
            # Some servers give all their answers the same id, by which the new message would replace an old one.
            answer = {key: value for key, value in answer.items() if key != "id"}
        calls = answer.get("tool_calls") or []
        step = {"step": "model", "iteration": turn.iteration, "tool_calls": [call["name"] for call in calls]}
        await self._callbacks.call("model", turn.state, iteration=turn.iteration, message=answer)
        await self._callbacks.call("step", turn.state, step=step)
        turn.update["scratchpad"].append(step)
        command = self._decide(turn, answer, calls)
        assert isinstance(command.update, dict)
        return Command({**turn.update, **turn.with_messages(command.update)}, goto=command.goto)

    def _decide(self, turn: _Turn, answer: Message, calls: list[ToolCall]) -> Command:
        """Return what follows the answer of a model."""
        is_last = turn.iteration >= turn.state["max_iterations"]
        if self._form is not None and (not calls or any(call["name"] == self._form.name for call in calls)):
            return self._conclude(self._form, answer, calls, is_last or turn.mistakes >= _MISTAKES)
        if not calls:
            return Command(self._update([answer], COMPLETED))
        if is_last:
            limit = turn.state["max_iterations"]
            text = f"This was not run, as the agent has reached its limit of {limit} iterations."
            refused = [chat.tool_answer(text, call, failed=True) for call in calls]
            return Command(self._update([answer, *refused], LIMITED))
        return Command(self._update([answer], RUNNING), goto=[Send(EXECUTE_TOOLS, call) for call in calls])

    def _prompted(self, turn: _Turn) -> list[Message]:
        """Return the messages to the model."""
        if "system_prompt" in turn.own and self._prompt is not None:
            prompt = turn.update["system_prompt"] = self._prompt(turn.state)
            turn.update["defaults"] = {**turn.defaults, "system_prompt": prompt}
        else:
            prompt = filled_in(turn.state["system_prompt"], turn.state["context"])
        return [chat.system(prompt), *turn.transcript] if prompt else turn.transcript

    def _described(self, turn: _Turn) -> list[dict[str, Any]]:
        """Return what the model is told of its tools."""
        names = names_of_tools(turn.state["tools"], self._tools)
        described: list[Tool | AnswerFormat] = [self._tools[name] for name in names]
        return [one.description_for_models for one in [*described, *([self._form] if self._form else [])]]

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
            advice = [chat.user(again, name=FORMAT_ADVISER)]
        update = self._update([answer, *advice], INVALID if is_last else RUNNING)
        return Command(update, goto=() if is_last else LLM_CALL)

    def _update(self, messages: list[Message], status: str, value: Any = None) -> dict[str, Any]:
        """Return the update of the state; in a thread, it also replaces the answer to an earlier question."""
        update = {"messages": messages, "status": status}
        return update if self._form is None else {**update, "structured_response": value}

    async def execute_tools(self, call: ToolCall, context: NodeContext) -> dict[str, Any]:
        """Answer one call of the model."""
        state = {
            name: _carried(context, name) for name in ("tools", "iteration", "context", "callbacks", "callback_meta")
        }
        message = await self._answer(call, context, state)
        status = message.get("status", "ok")
        step = {"step": "tool", "iteration": state["iteration"], "name": call["name"], "call_id": call["id"]}
        facts = {"iteration": state["iteration"], "call": call}
        if status == "error":
            told = {"where": "tool", "attempt": context.attempt, "error": message["content"]}
            await self._callbacks.call("error", state, **facts, **told)
        await self._callbacks.call("tool", state, **facts, message=message)
        await self._callbacks.call("step", state, step={**step, "status": status})
        return {"messages": [message], "full_messages": [message], "scratchpad": [{**step, "status": status}]}

    async def _answer(self, call: ToolCall, context: NodeContext, state: dict[str, Any]) -> Message:
        offered = [*self._tools] if state["tools"] is None else names_of_tools(state["tools"], self._tools)
        tool = self._tools[call["name"]] if call["name"] in offered else None
        if tool is None:
            text = f"There is no tool {call['name']!r}. Available tools: {', '.join(offered) or 'none'}."
            return chat.tool_answer(text, call, failed=True)
        agreed = consent(tool, call, context)
        if isinstance(agreed, str):
            return chat.tool_answer(agreed, call, failed=True)
        if context.attempt > tool.retry.attempts:
            # What a tool raises is told to the model at once: only the end of its process leaves another attempt.
            ended = ToolError("the process in which it ran has ended; it may have begun its work")
            return tool.failure(call, ended)
        # Each call is a task of its own, so that the task's key identifies the call.
        data = state["context"] or {}
        known = ToolContext(call["id"], context.key, emit=context.write, config=context.config, context=data)
        return await tool.arun(agreed, known)


class _Turn:
    """One call of a model: the state with its defaults, what is new in it, and the update of it.

    Attributes
    ----------
    state : dict
    transcript : list of dict
        The messages that the model gets.
    update : dict
        Of the state, without messages.
    own : set of str
        The fields whose values are those of ``create_agent``.
    iteration : int
        The number of this call, from 1.
    mistakes : int
        Number of answers in a wrong format since the user's last message.
    ids : set of str
        The ids of messages.
    """

    def __init__(self, state: dict[str, Any], transcript: list[Message], defaults: dict[str, Any], trim: Trim) -> None:
        full: list[Message] = state.get("full_messages") or []
        known = state.get("defaults") or {}
        self.own = {name for name in DEFAULTS if name not in state or state[name] == known.get(name)}
        self.defaults = {name: value for name, value in defaults.items() if name in self.own}
        written = {name: value for name, value in self.defaults.items() if state.get(name) != value}
        removed, rewritten = state.get("trimmed") or 0, state.get("rewritten") or 0
        self._new = new_messages(transcript, full, removed, rewritten)
        self.transcript = trimmed(transcript, trim)
        self._is_trimmed = self.transcript != transcript
        turn = turn_of(transcript)
        before = (state.get("iteration") or 0) if turn else 0
        self.iteration, self.mistakes = before + 1, _mistakes(turn)
        self.update: dict[str, Any] = {"iteration": self.iteration - (state.get("iteration") or 0), "scratchpad": []}
        self.update |= {"context": {}, "callback_meta": {}, **written}
        if written:
            self.update["defaults"] = self.defaults
        self.ids = {message.get("id") for message in (*transcript, *full)} - {None}
        if self._is_trimmed:
            cut = len(transcript) - len(self.transcript)
            self.update["trimmed"] = removed + cut
            self.update["rewritten"] = len(self.transcript) if callable(trim) else max(0, rewritten - cut)
            self.update["scratchpad"].append({"step": "trim", "iteration": self.iteration, "removed": cut})
        self.state = {**state, **written, "messages": self.transcript, "iteration": self.iteration}
        self.state["full_messages"] = [*full, *self._new]
        for name in ("context", "callbacks", "callback_meta"):
            self.state[name] = state.get(name) or {}
        check_integer('the state\'s "max_iterations"', self.state["max_iterations"], 1, 1 << 31)
        check_system_prompt(self.state["system_prompt"])

    def with_messages(self, update: dict[str, Any]) -> dict[str, Any]:
        """Return an update that also has the messages for the whole transcript, and replaces a trimmed one."""
        added = update["messages"]
        shown = [*replacement(self.transcript), *added] if self._is_trimmed else added
        return {**update, "messages": shown, "full_messages": [*self._new, *added]}


def _carried(context: NodeContext, name: str) -> Any:
    """Return a field of the state as the last superstep left it, or None."""
    value = context._context.aggregated(name)
    return value[0] if value else None


def _mistakes(turn: list[Message]) -> int:
    """Return how many answers in a wrong format the model has given in a turn."""
    return sum(
        message.get("name") == FORMAT_ADVISER
        or (message.get("name") == AnswerFormat.name and message.get("status") == "error")
        for message in turn
    )


_FORMS = 'answer True, False, {"arguments": {…}} or a text'


def consent(tool: Tool, call: ToolCall, context: NodeContext) -> ToolCall | str:
    """Return the call to make, or what the model is told instead of a result.

    A call with wrong arguments is not asked about, as it will fail. An answer that cannot be used is asked for again.
    """
    if tool.check(call) is not None or not tool.asks_for_consent(call["arguments"]):
        return call
    question: dict[str, Any] = {"tool": tool.name, "arguments": call["arguments"], "call_id": call["id"]}
    answer = context.interrupt(question)
    while True:
        if answer is True:
            return call
        if answer is False:
            return "A human has refused this call."
        if isinstance(answer, str):
            return f"A human has answered instead of the tool: {answer}"
        problem = _FORMS
        if isinstance(answer, dict) and answer.keys() == {"arguments"} and isinstance(answer["arguments"], dict):
            changed = {**call, "arguments": answer["arguments"]}
            wrong = tool.check(changed)
            if wrong is None:
                return changed
            problem = f"the arguments are wrong: {wrong}"
        answer = context.interrupt({**question, "problem": problem})
