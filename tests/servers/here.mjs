// Imported before a server that listens on a port of its own choice, everywhere: it listens on this machine only, on a port that the
// system picks, and says which.
import net from "node:net";

const listen = net.Server.prototype.listen;

net.Server.prototype.listen = function (_port, ...rest) {
  const listening = rest.findLast((argument) => typeof argument === "function");
  this.once("listening", () => console.log(`here: ${this.address().port}`));
  return listen.call(this, { port: 0, host: "127.0.0.1" }, listening);
};
