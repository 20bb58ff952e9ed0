// A loopback of the test's own, for programs whose ports are fixed (a sidecar's 15000, 15006, ...).
#pragma once

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

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
};

}  // namespace wavetank
