#!/bin/sh
# Follows a job with nothing but curl, by server-sent events: each of its events once and in order, as a line of JSON,
# over any number of broken connections. Ends after the terminal event.
#
#   curl.sh JOB [http://127.0.0.1:4000/graphql]

job=${1:?"usage: $0 JOB [URL]"}
url=${2:-http://127.0.0.1:4000/graphql}
query='subscription ($id: ID!, $after: Int) { jobEvents(id: $id, after: $after) { seq type: __typename state summary } }'

# One connection, from behind event $after. Prints events on 3 and, at its end, how far they came, or "done" or "failed".
receive() {
  curl -sSN --connect-timeout 5 --keepalive-time 10 "$url" \
    -H 'content-type: application/json' -H 'accept: text/event-stream' \
    -d "{\"query\":\"$query\",\"variables\":{\"id\":\"$job\",\"after\":$after}}" | {
    # A line that was cut off is none: it comes again, whole.
    while IFS= read -r line; do
      case $line in
        *'"errors":['*) echo "$line" >&2 && after=failed ;;
        'data: {'*'"seq":'*)
          seq=${line#*'"seq":'}
          after=${seq%%[!0-9]*}
          echo "${line#data: }" >&3
          ;;
        'event: complete') [ "$after" = failed ] || after=done ;;
      esac
    done
    echo "$after"
  }
}

exec 3>&1
after=0
while [ "$after" != done ]; do
  after=$(receive)
  [ "$after" != failed ] || exit 1
  [ "$after" = done ] || sleep 1
done
