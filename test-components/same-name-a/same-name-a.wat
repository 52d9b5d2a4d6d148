;; Exports the same name as its twin and answers "a", so a test sees which of the two was called.
(component
  (core module $code
    (memory (export "memory") 1)
    ;; Return area: a pointer to the text, its length; then the text.
    (data (i32.const 0) "\08\00\00\00\01\00\00\00a")
    (func (export "shared") (result i32) (i32.const 0)))
  (core instance $guest (instantiate $code))

  (func (export "shared") (result string)
    (canon lift (core func $guest "shared") (memory (core memory $guest "memory")))))
