# Two stages: build the environment, then copy it to a slim image that runs as nobody in particular.
# Pin the base where you build: --build-arg PYTHON_IMAGE=python:3.12-slim@sha256:… (docs/how-to/deployment.md says how to find the digest).
ARG PYTHON_IMAGE=python:3.12-slim
FROM ${PYTHON_IMAGE} AS build
WORKDIR /build
RUN python -m venv /opt/outlay
COPY requirements.lock pyproject.toml README.md LICENSE ./
RUN /opt/outlay/bin/pip install --no-cache-dir --require-hashes --requirement requirements.lock
COPY service service
COPY providers providers
COPY workers workers
COPY migrations migrations
COPY outlay_client outlay_client
RUN /opt/outlay/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM ${PYTHON_IMAGE}
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/outlay outlay
COPY --from=build /opt/outlay /opt/outlay
ENV PATH=/opt/outlay/bin:$PATH OUTLAY_HOST=0.0.0.0 OUTLAY_PORT=8080 OUTLAY_DATA_DIR=/var/lib/outlay/data PYTHONUNBUFFERED=1
USER outlay
WORKDIR /var/lib/outlay
VOLUME /var/lib/outlay
EXPOSE 8080
HEALTHCHECK --interval=15s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/readyz', timeout=2)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["outlay"]
CMD ["serve"]
