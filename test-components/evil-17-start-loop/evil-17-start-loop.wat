;; Loops in the start function, so an instance never comes to be and even `add` runs into the deadline.
(component
  (core module $code
    (func $start (loop $again (br $again)))
    (start $start)
    (func (export "add") (param i32 i32) (result i32)
      (i32.add (local.get 0) (local.get 1))))
  (core instance $guest (instantiate $code))

  (func (export "add") (param "a" s32) (param "b" s32) (result s32)
    (canon lift (core func $guest "add"))))
