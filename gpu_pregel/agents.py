"""Agent vertices: Python values computed by ordinary functions in worker processes, superstep by superstep.

:func:`run` runs to the end; :func:`start` returns an :class:`AgentRun`, which runs step by step.
"""

from gpu_pregel.host.agents.agent_run import AgentRun
from gpu_pregel.host.agents.codec import register
from gpu_pregel.host.agents.combiners import TopK
from gpu_pregel.host.agents.context import Context
from gpu_pregel.host.agents.master_context import MasterContext
from gpu_pregel.host.agents.observers.events import Event, LogObserver, ProgressObserver
from gpu_pregel.host.agents.observers.telemetry import OpenTelemetryObserver
from gpu_pregel.host.agents.observers.timeline import Timeline
from gpu_pregel.host.agents.requests import answer, cancel, retry, send
from gpu_pregel.host.agents.results import AgentResult, VertexFailure
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.host.agents.run import arun, run, start
from gpu_pregel.host.agents.stored_runs import (
    aresume,
    astart_or_resume,
    fork,
    reopen,
    resume,
    start_or_resume,
    state_at,
)
from gpu_pregel.host.agents.supervisor import serve
from gpu_pregel.host.agents.vertices import Edge, Vertex
from gpu_pregel.host.superstep.aggregators import Aggregator

__all__ = [
    "AgentResult",
    "AgentRun",
    "Aggregator",
    "Context",
    "Edge",
    "Event",
    "LogObserver",
    "MasterContext",
    "OpenTelemetryObserver",
    "ProgressObserver",
    "RetryPolicy",
    "Timeline",
    "TopK",
    "Vertex",
    "VertexFailure",
    "answer",
    "aresume",
    "arun",
    "astart_or_resume",
    "cancel",
    "fork",
    "register",
    "reopen",
    "resume",
    "retry",
    "run",
    "send",
    "serve",
    "start",
    "start_or_resume",
    "state_at",
]
