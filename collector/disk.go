package collector

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
)

// disks exports the sizes of the disks that directories are on. A directory that
// is not there has no value.
type disks struct {
	dirs       []string
	free, size *prometheus.Desc
}

func newDisks(dirs []string) disks {
	slices.Sort(dirs)
	describe := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("auditcollector_"+name, help, []string{"dir"}, nil)
	}
	return disks{
		slices.Compact(dirs),
		describe("disk_free_bytes", "Bytes that may still be written to the disk of the directory."),
		describe("disk_size_bytes", "Size of the disk of the directory."),
	}
}

func (d disks) Describe(to chan<- *prometheus.Desc) {
	to <- d.free
	to <- d.size
}

func (d disks) Collect(to chan<- prometheus.Metric) {
	for _, dir := range d.dirs {
		var s unix.Statfs_t
		if unix.Statfs(dir, &s) != nil {
			continue
		}
		block := uint64(s.Bsize)
		to <- prometheus.MustNewConstMetric(d.free, prometheus.GaugeValue, float64(s.Bavail*block), dir)
		to <- prometheus.MustNewConstMetric(d.size, prometheus.GaugeValue, float64(s.Blocks*block), dir)
	}
}
