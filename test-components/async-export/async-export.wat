;; `async func` exports as of WASI 0.3, lifted with a callback: the core function starts the task and says what it
;; waits for; the host calls back; the task hands its result over with task.return and says that it is done.
(component
  (core module $memory (memory (export "memory") 1)
    (global $free (mut i32) (i32.const 1024))
    ;; Only ever called for a new string of one byte per unit, and never given back: a bump is enough.
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (global.get $free)
      (global.set $free (i32.add (global.get $free) (local.get 3)))))
  (core instance $shared (instantiate $memory))
  (alias core export $shared "memory" (core memory $mem))
  (alias core export $shared "realloc" (core func $realloc))

  (core func $return-sum (canon task.return (result s32)))
  (core func $return-text (canon task.return (result string) (memory $mem)))
  (core func $return-nothing (canon task.return))

  (core module $code
    (import "task" "return-sum" (func $return-sum (param i32)))
    (import "task" "return-text" (func $return-text (param i32 i32)))
    (import "task" "return-nothing" (func $return-nothing))
    (global $sum (mut i32) (i32.const 0))

    ;; Answers of a task to the host: 0 is "done", 1 is "call me again".
    (func (export "slow-add") (param i32 i32) (result i32)
      (global.set $sum (i32.add (local.get 0) (local.get 1)))
      (i32.const 1))
    (func (export "slow-add-again") (param i32 i32 i32) (result i32)
      (call $return-sum (global.get $sum))
      (i32.const 0))
    (func (export "echo") (param i32 i32) (result i32)
      (call $return-text (local.get 0) (local.get 1))
      (i32.const 0))
    (func (export "nothing") (result i32)
      (call $return-nothing)
      (i32.const 0))
    (func (export "spin") (result i32)
      (i32.const 1))
    (func (export "spin-again") (param i32 i32 i32) (result i32)
      (i32.const 1))
    (func (export "never-called") (param i32 i32 i32) (result i32)
      unreachable)
    (func (export "add") (param i32 i32) (result i32)
      (i32.add (local.get 0) (local.get 1))))
  (core instance $guest (instantiate $code
    (with "task" (instance
      (export "return-sum" (func $return-sum))
      (export "return-text" (func $return-text))
      (export "return-nothing" (func $return-nothing))))))
  (alias core export $guest "slow-add-again" (core func $slow-add-again))
  (alias core export $guest "spin-again" (core func $spin-again))
  (alias core export $guest "never-called" (core func $never-called))

  (func (export "slow-add") async (param "a" s32) (param "b" s32) (result s32)
    (canon lift (core func $guest "slow-add") async (callback $slow-add-again)))
  (func (export "echo") async (param "text" string) (result string)
    (canon lift (core func $guest "echo") async (callback $never-called)
      (memory $mem) (realloc $realloc)))
  (func (export "nothing") async
    (canon lift (core func $guest "nothing") async (callback $never-called)))
  ;; Yields for ever: no instruction loop, yet no end.
  (func (export "yield-forever") async
    (canon lift (core func $guest "spin") async (callback $spin-again)))
  (func (export "add") (param "a" s32) (param "b" s32) (result s32)
    (canon lift (core func $guest "add"))))
