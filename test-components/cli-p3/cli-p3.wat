;; A program of WASI 0.3: `run` is an `async func`, and the standard output takes a stream and answers with a future. It is
;; lifted with a callback, so it says what it waits for and goes on in `callback` once that has happened.
(component
  (import "wasi:cli/types@0.3.0" (instance $types
    (type $error-code (enum "io" "illegal-byte-sequence" "pipe"))
    (export "error-code" (type (eq $error-code)))))
  (alias export $types "error-code" (type $error-code))
  (import "wasi:cli/stdout@0.3.0" (instance $stdout
    (alias outer 1 $error-code (type $of-types))
    (export "error-code" (type $error-code (eq $of-types)))
    (type $bytes (stream u8))
    (type $written (future (result (error $error-code))))
    (export "write-via-stream" (func (param "data" $bytes) (result $written)))))
  (type $bytes (stream u8))
  (type $written (future (result (error $error-code))))

  (core module $memory (memory (export "memory") 1)
    (data (i32.const 16) "hello from 0.3\n"))
  (core instance $shared (instantiate $memory))
  (alias core export $shared "memory" (core memory $mem))

  (core func $write-via-stream (canon lower (func $stdout "write-via-stream")))
  (core func $stream.new (canon stream.new $bytes))
  (core func $stream.write (canon stream.write $bytes async (memory $mem)))
  (core func $stream.drop-writable (canon stream.drop-writable $bytes))
  (core func $future.read (canon future.read $written async (memory $mem)))
  (core func $future.drop-readable (canon future.drop-readable $written))
  (core func $waitable-set.new (canon waitable-set.new))
  (core func $waitable.join (canon waitable.join))
  (core func $task.return (canon task.return (result (result))))

  (core module $code
    (import "shared" "memory" (memory 1))
    (import "host" "write-via-stream" (func $write-via-stream (param i32) (result i32)))
    (import "host" "stream.new" (func $stream.new (result i64)))
    (import "host" "stream.write" (func $stream.write (param i32 i32 i32) (result i32)))
    (import "host" "stream.drop-writable" (func $stream.drop-writable (param i32)))
    (import "host" "future.read" (func $future.read (param i32 i32) (result i32)))
    (import "host" "future.drop-readable" (func $future.drop-readable (param i32)))
    (import "host" "waitable-set.new" (func $waitable-set.new (result i32)))
    (import "host" "waitable.join" (func $waitable.join (param i32 i32)))
    (import "host" "task.return" (func $task.return (param i32)))

    (global $set (mut i32) (i32.const 0))
    (global $writable (mut i32) (i32.const 0))
    (global $future (mut i32) (i32.const 0))

    ;; The answer to the host that asks for a call of `callback` once this has happened: 2 is "wait", above it is the set.
    (func $wait-for (param $waitable i32) (result i32)
      (call $waitable.join (local.get $waitable) (global.get $set))
      (i32.or (i32.const 2) (i32.shl (global.get $set) (i32.const 4))))

    (func (export "run") (result i32)
      (local $ends i64)
      (global.set $set (call $waitable-set.new))
      ;; The end to read is the lower half, the one to write the upper half.
      (local.set $ends (call $stream.new))
      (global.set $writable (i32.wrap_i64 (i64.shr_u (local.get $ends) (i64.const 32))))
      (global.set $future (call $write-via-stream (i32.wrap_i64 (local.get $ends))))
      ;; -1 is "not yet".
      (if (i32.eq (call $stream.write (global.get $writable) (i32.const 16) (i32.const 15)) (i32.const -1))
        (then (return (call $wait-for (global.get $writable)))))
      (call $close))

    (func $close (result i32)
      (call $stream.drop-writable (global.get $writable))
      (if (i32.eq (call $future.read (global.get $future) (i32.const 0)) (i32.const -1))
        (then (return (call $wait-for (global.get $future)))))
      (call $end))

    ;; Success or failure as the future has it, whose value begins with 0 or 1 too. A last 0 is "done".
    (func $end (result i32)
      (call $future.drop-readable (global.get $future))
      (call $task.return (i32.load8_u (i32.const 0)))
      (i32.const 0))

    ;; Event 3 is that the stream was written to; the only other one to wait for is that the future has a value.
    (func (export "callback") (param $event i32) (param i32 i32) (result i32)
      (if (i32.eq (local.get $event) (i32.const 3))
        (then (return (call $close))))
      (call $end)))
  (core instance $guest (instantiate $code
    (with "shared" (instance $shared))
    (with "host" (instance
      (export "write-via-stream" (func $write-via-stream))
      (export "stream.new" (func $stream.new))
      (export "stream.write" (func $stream.write))
      (export "stream.drop-writable" (func $stream.drop-writable))
      (export "future.read" (func $future.read))
      (export "future.drop-readable" (func $future.drop-readable))
      (export "waitable-set.new" (func $waitable-set.new))
      (export "waitable.join" (func $waitable.join))
      (export "task.return" (func $task.return))))))
  (alias core export $guest "callback" (core func $callback))

  (func $run async (result (result))
    (canon lift (core func $guest "run") async (callback $callback)))
  (instance $exported (export "run" (func $run)))
  (export "wasi:cli/run@0.3.0" (instance $exported)))
