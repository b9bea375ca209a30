# Shared by the scripts that mount a file system of several machines: its servers, on loopback.
#
# Source it after session.sh. `start_servers` starts a PostgreSQL of its own, and an s3s-fs where
# that is on PATH. session.sh ends both after its mounts.
# shellcheck shell=bash

as_postgres() { (cd / && runuser -u postgres -- "$@"); }

answers_at() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

free_port() { # FIRST
    local port=$1
    while answers_at "$port"; do port=$((port + 1)); done
    echo "$port"
}

# start_servers [SETTING=VALUE…]: sets BIN (PostgreSQL's programs), PORT and SERVER (its address, to
# be followed by `?fs=NAME`). The settings are the server's.
start_servers() {
    local data=$WORK/pg setting
    BIN=$(find /usr/lib/postgresql -path '*/bin/initdb' 2>/dev/null | sort -V | tail -1)
    BIN=${BIN%/initdb}
    [ -n "$BIN" ] || unfit "PostgreSQL is not installed (package postgresql)"
    need_root
    mkdir -m 700 "$data"
    chown postgres: "$data"
    PORT=$(free_port $((5500 + RANDOM % 400)))
    POSTGRES_OPTIONS="-p $PORT -h 127.0.0.1 -k '$data'"
    for setting in "$@"; do POSTGRES_OPTIONS+=" -c $setting"; done
    as_postgres "$BIN/initdb" -D "$data" -U postgres -A trust -E UTF8 --locale=C -N \
        >"$WORK/initdb.log" 2>&1 || die "initdb: $(tail -3 "$WORK/initdb.log")"
    start_postgres
    # shellcheck disable=SC2034 # the caller uses it
    SERVER="pg://postgres@127.0.0.1:$PORT/postgres"
    OBJECTS=
    if command -v s3s-fs >/dev/null; then
        OBJECTS=$(free_port $((9200 + RANDOM % 400)))
        mkdir "$WORK/s3"
        export AWS_ACCESS_KEY_ID=clusterkey AWS_SECRET_ACCESS_KEY=clustersecret
        RUST_LOG=error s3s-fs --host 127.0.0.1 --port "$OBJECTS" --access-key "$AWS_ACCESS_KEY_ID" \
            --secret-key "$AWS_SECRET_ACCESS_KEY" "$WORK/s3" </dev/null >"$WORK/s3.log" 2>&1 &
        SERVERS+=($!)
        until_true 10 answers_at "$OBJECTS" || die "s3s-fs: $(tail -3 "$WORK/s3.log")"
    fi
    say "PostgreSQL at port $PORT, objects in ${OBJECTS:+s3s-fs at port }${OBJECTS:-a folder}"
}

# As it was started by start_servers; POSTGRES is its process.
start_postgres() {
    local data=$WORK/pg
    as_postgres "$BIN/pg_ctl" -D "$data" -l "$data/log" -w -t 60 -o "$POSTGRES_OPTIONS" start \
        >/dev/null || die "PostgreSQL: $(tail -5 "$data/log")"
    POSTGRES=$(sed -n 1p "$data/postmaster.pid")
    SERVERS+=("$POSTGRES")
}

# As a crash ends it.
stop_postgres() {
    local pid left=()
    as_postgres "$BIN/pg_ctl" -D "$WORK/pg" -w -m immediate stop >/dev/null
    for pid in "${SERVERS[@]}"; do
        [ "$pid" = "$POSTGRES" ] || left+=("$pid")
    done
    SERVERS=("${left[@]}")
}

# bucket_for NAME: the parameters of an address that name a new bucket.
bucket_for() {
    if [ -n "$OBJECTS" ]; then
        mkdir -p "$WORK/s3/$1"
        echo "bucket=s3://$1/tree&endpoint=http://127.0.0.1:$OBJECTS"
    else
        mkdir -p "$WORK/objects/$1"
        echo "bucket=file://$WORK/objects/$1"
    fi
}
