;; Returns more than anybody can want. Its own memory stays below the usual limit: the cost falls on the host.
(component
  (core module $code
    (memory (export "memory") 1)

    ;; Writes a list of $length elements at $pointer into the return area, which is at 0.
    (func $return (param $pointer i32) (param $length i32) (result i32)
      (i32.store (i32.const 0) (local.get $pointer))
      (i32.store (i32.const 4) (local.get $length))
      (i32.const 0))

    ;; 200 million bytes.
    (func (export "large-bytes") (result i32)
      (drop (memory.grow (i32.const 3100)))
      (call $return (i32.const 8) (i32.const 200000000)))
    ;; 200 million letters.
    (func (export "large-text") (result i32)
      (drop (memory.grow (i32.const 3100)))
      (memory.fill (i32.const 8) (i32.const 97) (i32.const 200000000))
      (call $return (i32.const 8) (i32.const 200000000)))
    ;; A list of 60000 texts that are all the same MiB of memory: 1.5 MiB here, 60 GB for whoever copies it.
    (func (export "amplified") (result i32)
      (local $entry i32)
      (drop (memory.grow (i32.const 32)))
      (memory.fill (i32.const 1048576) (i32.const 97) (i32.const 1048576))
      (local.set $entry (i32.const 480000))
      (loop $next
        (i32.store (local.get $entry) (i32.const 1048576))
        (i32.store offset=4 (local.get $entry) (i32.const 1048576))
        (local.set $entry (i32.sub (local.get $entry) (i32.const 8)))
        (br_if $next (i32.ge_u (local.get $entry) (i32.const 8))))
      (call $return (i32.const 8) (i32.const 60000)))
    (func (export "add") (param i32 i32) (result i32)
      (i32.add (local.get 0) (local.get 1))))
  (core instance $guest (instantiate $code))
  (alias core export $guest "memory" (core memory $memory))

  (func (export "large-bytes") (result (list u8))
    (canon lift (core func $guest "large-bytes") (memory $memory)))
  (func (export "large-text") (result string)
    (canon lift (core func $guest "large-text") (memory $memory)))
  (func (export "amplified") (result (list string))
    (canon lift (core func $guest "amplified") (memory $memory)))
  (func (export "add") (param "a" s32) (param "b" s32) (result s32)
    (canon lift (core func $guest "add"))))
