;; Fails in every way that the machine itself notices. `add` works, before and after.
(component
  (core module $code
    (memory (export "memory") 1)
    ;; Return area of bad-text: a pointer to one byte that no UTF-8 text contains, and the length 1.
    (data (i32.const 0) "\08\00\00\00\01\00\00\00\ff")

    (func (export "give-up") unreachable)
    (func (export "divide") (param i32 i32) (result i32)
      (i32.div_s (local.get 0) (local.get 1)))
    (func (export "out-of-bounds") (result i32)
      (i32.load (i32.const -4)))
    (func (export "bad-text") (result i32) (i32.const 0))
    ;; Half a surrogate pair is no character.
    (func (export "bad-char") (result i32) (i32.const 0xd800))
    (func (export "add") (param i32 i32) (result i32)
      (i32.add (local.get 0) (local.get 1))))
  (core instance $guest (instantiate $code))
  (alias core export $guest "memory" (core memory $memory))

  (func (export "give-up") (canon lift (core func $guest "give-up")))
  (func (export "divide") (param "a" s32) (param "b" s32) (result s32)
    (canon lift (core func $guest "divide")))
  (func (export "out-of-bounds") (result u32)
    (canon lift (core func $guest "out-of-bounds")))
  (func (export "bad-text") (result string)
    (canon lift (core func $guest "bad-text") (memory $memory)))
  (func (export "bad-char") (result char)
    (canon lift (core func $guest "bad-char")))
  (func (export "add") (param "a" s32) (param "b" s32) (result s32)
    (canon lift (core func $guest "add"))))
