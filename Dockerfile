# docker build -t cmpg . && docker run --rm -v "$PWD:/work" cmpg solve grid-world --out run
FROM python:3.12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE constraints.txt ./
COPY src src
RUN pip install --no-cache-dir --prefix=/install -c constraints.txt '.[plot,report]'

FROM python:3.12-slim
COPY --from=build /install /usr/local
RUN useradd --create-home cmpg
USER cmpg
WORKDIR /work
ENTRYPOINT ["cmpg"]
CMD ["--help"]
