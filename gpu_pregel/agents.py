"""Agent vertices: Python values computed by ordinary functions in worker processes, superstep by superstep.

:func:`run` runs to completion; :func:`start` returns an :class:`AgentRun`, which runs step by step and can continue
after failures.
"""

from __future__ import annotations

from gpu_pregel.host.agents.agent_run import AgentRun
from gpu_pregel.host.agents.codec import register
from gpu_pregel.host.agents.combiners import TopK
from gpu_pregel.host.agents.context import Context, Edge
from gpu_pregel.host.agents.observers.events import Event, LogObserver, ProgressObserver
from gpu_pregel.host.agents.observers.telemetry import OpenTelemetryObserver
from gpu_pregel.host.agents.options import Aggregator, Vertex
from gpu_pregel.host.agents.results import AgentResult, Failed, FinalVertex
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.host.agents.rules import MasterContext
from gpu_pregel.host.agents.run import arun, run, start
from gpu_pregel.host.agents.stored_runs import fork, reopen, resume, state_at

__all__ = [
    "AgentResult",
    "AgentRun",
    "Aggregator",
    "Context",
    "Edge",
    "Event",
    "Failed",
    "FinalVertex",
    "LogObserver",
    "MasterContext",
    "OpenTelemetryObserver",
    "ProgressObserver",
    "RetryPolicy",
    "TopK",
    "Vertex",
    "arun",
    "fork",
    "register",
    "reopen",
    "resume",
    "run",
    "start",
    "state_at",
]
