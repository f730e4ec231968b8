"""OpenTelemetry traces of requests, statements, Redis, jobs and price sources: where an address to send them to is set.

The variables are OpenTelemetry's own (OTEL_EXPORTER_OTLP_ENDPOINT and so on); the packages are those of the extra `otel`. Statements have
listeners here, as OpenTelemetry's instrumentation of SQLAlchemy refuses the version that this service uses.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flask import Flask
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Tracer

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
UNTRACED = "healthz,readyz,metrics"
ADDRESSES = ("url.full", "http.url", "http.target")
"""Attributes with an address, whose query may hold a link's token or a credential."""
QUERY = "url.query"
HIDDEN = "***"
MISSING = "OTEL_EXPORTER_OTLP_ENDPOINT is set, but the packages of traces are missing: pip install 'outlay[otel]'"

_log = logging.getLogger(__name__)
_started: list[TracerProvider] = []


def start(service: str, env: Mapping[str, str] = os.environ) -> bool:
    """Begin to trace this process, once, if it is to be traced; returns whether it is. For forked processes: after the fork."""
    if not any(env.get(name) for name in ENDPOINTS):
        return False
    if not _started:
        try:
            _started.append(_provider(service))
        except ImportError:
            _log.warning(MISSING)
            return False
        _instrument(_started[0])
    return True


def trace_app(app: Flask) -> None:
    """Trace the requests of `app`, if this process is traced; before anything else is done at the begin of a request."""
    if start("outlay-web"):
        from opentelemetry.instrumentation.flask import FlaskInstrumentor

        flask: Any = FlaskInstrumentor()  # not typed
        flask.instrument_app(app, tracer_provider=_started[0], excluded_urls=UNTRACED)
        app.before_request(_hide_queries)


def flush() -> None:
    """Send what was not sent yet."""
    for provider in _started:
        provider.force_flush()


def _provider(service: str) -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    class WithoutQueries(SpanProcessor):
        """Hides the queries of addresses that are asked."""

        def on_start(self, span: Any, parent_context: Any = None) -> None:  # noqa: ARG002 - OpenTelemetry's signature
            _hide_queries_of(span)

    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: os.environ.get("OTEL_SERVICE_NAME") or service}))
    provider.add_span_processor(WithoutQueries())
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def _hide_queries() -> None:
    """In the span of the present request: its instrumentation sets addresses after the begin of the span."""
    from opentelemetry.trace import get_current_span

    _hide_queries_of(get_current_span())


def _hide_queries_of(span: Any) -> None:
    attributes = getattr(span, "attributes", None) or {}  # one that is not recorded has none
    for name in ADDRESSES:
        path, found, _ = str(attributes.get(name, "")).partition("?")
        if found:
            span.set_attribute(name, path)
    if attributes.get(QUERY):
        span.set_attribute(QUERY, HIDDEN)


def _instrument(provider: TracerProvider) -> None:
    """Instrument what all applications of this process share."""
    from opentelemetry.instrumentation.celery import CeleryInstrumentor
    from opentelemetry.instrumentation.redis import RedisInstrumentor
    from opentelemetry.instrumentation.requests import RequestsInstrumentor
    from sqlalchemy import Engine, event

    kinds: tuple[Any, ...] = (CeleryInstrumentor, RedisInstrumentor, RequestsInstrumentor)
    for instrumentor in kinds:
        instrumentor().instrument(tracer_provider=provider)
    event.listen(Engine, "before_cursor_execute", partial(_begin_statement, provider.get_tracer("outlay.store")))
    event.listen(Engine, "after_cursor_execute", _end_statement)
    event.listen(Engine, "handle_error", _fail_statement)


def _begin_statement(tracer: Tracer, connection: Any, _cursor: Any, statement: str, _parameters: Any, context: Any, _many: bool) -> None:
    """Values are bound parameters and stand in no statement."""
    from opentelemetry.trace import SpanKind

    if context is not None:
        attributes = {"db.system.name": connection.dialect.name, "db.query.text": statement}
        name = statement.split(maxsplit=1)[0].upper() if statement.strip() else "SQL"
        context.span = tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes)


def _end_statement(_connection: Any, _cursor: Any, _statement: str, _parameters: Any, context: Any, _many: bool) -> None:
    _end(context)


def _fail_statement(failure: Any) -> None:
    from opentelemetry.trace import StatusCode

    span = getattr(failure.execution_context, "span", None)
    if span is not None:
        span.set_status(StatusCode.ERROR, type(failure.original_exception).__name__)
    _end(failure.execution_context)


def _end(context: Any) -> None:
    span = getattr(context, "span", None)
    if span is not None:
        span.end()
        context.span = None
