# A process manager is killed when the only rank has ended well, and what that has left behind may still write. Says the
# status of pip-exec.
#   MANAGER=FILE PIP_EXEC=FILE sh managers_end.sh
case $1 in
'')
    rm -f status left said
    # Hydra stays as long as what was left behind.
    "$MANAGER" -n 1 sh "$0" node &
    until test -s status; do sleep 0.05; done
    kill "$(cat left)"
    wait
    echo "status $(cat status)"
    cat said
    ;;
node)
    export PROXY=$PPID
    "$PIP_EXEC" -l -n 1 --no-mpi sh "$0" rank >said 2>&1
    echo $? >status
    ;;
rank)
    sh "$0" left $$ &
    ;;
left)
    echo $$ >left
    while kill -0 "$2" 2>/dev/null; do sleep 0.1; done
    sleep 0.3
    kill -9 "$PROXY"
    exec sleep 600
    ;;
esac
