;; Never comes back: from a call, from the allocation of an argument, and from the clean-up after a call.
(component
  (core module $code
    (memory (export "memory") 1)
    (func $forever (loop $again (br $again)))

    (func (export "spin") (call $forever))
    ;; The host calls this while it hands over a string, before the function itself runs.
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (call $forever) unreachable)
    (func (export "take") (param i32 i32))
    ;; The host calls this when it already has the result.
    (func (export "clean-up") (param i32) (call $forever))
    (func (export "add") (param i32 i32) (result i32)
      (i32.add (local.get 0) (local.get 1))))
  (core instance $guest (instantiate $code))
  (alias core export $guest "memory" (core memory $memory))
  (alias core export $guest "realloc" (core func $realloc))
  (alias core export $guest "clean-up" (core func $clean-up))

  (func (export "spin") (canon lift (core func $guest "spin")))
  (func (export "spin-in-realloc") (param "text" string)
    (canon lift (core func $guest "take") (memory $memory) (realloc $realloc)))
  (func (export "spin-in-clean-up") (param "a" s32) (param "b" s32) (result s32)
    (canon lift (core func $guest "add") (post-return $clean-up)))
  (func (export "add") (param "a" s32) (param "b" s32) (result s32)
    (canon lift (core func $guest "add"))))
