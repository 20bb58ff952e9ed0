// A loopback of the test's own, for programs whose ports are fixed (a sidecar's 15000, 15006, ...).
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace wavetank {

// Until its end this thread, and every process that it starts, is in a network namespace where nothing but the loopback
// is. Needs the right to make one (root); without it nothing changes.
class OwnNetwork {
 public:
  OwnNetwork() : home_(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {
    entered_ = home_ >= 0 && unshare(CLONE_NEWNET) == 0;
    if (entered_) RaiseLoopback();
  }
  ~OwnNetwork() {
    if (entered_) setns(home_, CLONE_NEWNET);
    if (home_ >= 0) close(home_);
  }
  // Gives its loopback an IPv4 address beside its own: what is sent there arrives here. False: it has no such network.
  bool AddAddress(const char* address) {
    ifreq request{};
    std::snprintf(request.ifr_name, sizeof request.ifr_name, "lo:%d", ++added_);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    if (!entered_ || inet_pton(AF_INET, address, &at.sin_addr) != 1) return false;
    std::memcpy(&request.ifr_addr, &at, sizeof at);
    const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool given = ioctl(any, SIOCSIFADDR, &request) == 0;
    close(any);
    return given;
  }
  OwnNetwork(const OwnNetwork&) = delete;
  OwnNetwork& operator=(const OwnNetwork&) = delete;

 private:
  static void RaiseLoopback() {
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP;
    const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ioctl(any, SIOCSIFFLAGS, &request);
    close(any);
  }

  int home_;
  bool entered_ = false;
  int added_ = 0;
};

}  // namespace wavetank
