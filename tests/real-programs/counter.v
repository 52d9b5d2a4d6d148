module counter(input clk, output led);
  reg [3:0] count = 0;
  always @(posedge clk) count <= count + 1;
  assign led = count[3];
endmodule
