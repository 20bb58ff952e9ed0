// A child process that does not outlive what started it.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace wavetank::envoydiff {

class Process {
 public:
  Process() = default;
  ~Process() { Kill(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // What it prints goes to the file `log`. It has the network of the thread that calls this, and the kernel kills it
  // when that thread ends.
  bool Start(const std::vector<std::string>& arguments, const std::string& log);
  bool running();
  void Kill();

 private:
  pid_t pid_ = -1;
};

// Gives the calling thread, and what it starts, a network namespace of its own in which only the loopback interface is
// up; false if the system allows none.
bool EnterOwnNetwork();

// Whether this process may make network namespaces, found by trying once in a child.
bool NetworkNamespaceAllowed();

// bind(2), asked again for up to two seconds while the address is in use: until its exec, a child that another thread
// starts holds what this one has closed.
bool BindWhenFree(int fd, const sockaddr* at, socklen_t size);

// Redirects connections from an address to a port of this network, as Istio's rules do with iptables; false if that is
// not to be had.
bool RedirectFrom(const std::string& address, int port);

}  // namespace wavetank::envoydiff
