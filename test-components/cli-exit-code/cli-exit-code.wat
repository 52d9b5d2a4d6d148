;; A program that says nothing and ends with 42: by `exit-with-code`, because the result of `run` only tells success from failure.
(component
  (import "wasi:cli/exit@0.2.12" (instance $exit
    (export "exit-with-code" (func (param "status-code" u8)))))
  (core func $exit-with-code (canon lower (func $exit "exit-with-code")))

  (core module $code
    (import "exit" "with-code" (func $exit-with-code (param i32)))
    (func (export "run") (result i32)
      (call $exit-with-code (i32.const 42))
      unreachable))
  (core instance $guest (instantiate $code
    (with "exit" (instance (export "with-code" (func $exit-with-code))))))

  (func $run (result (result)) (canon lift (core func $guest "run")))
  (instance $exported (export "run" (func $run)))
  (export "wasi:cli/run@0.2.12" (instance $exported)))
