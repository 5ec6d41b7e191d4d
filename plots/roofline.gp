# How a roofline looks: a point a row, under the measured ceilings of memory and arithmetic. `kbench profile` writes NAME.gp: first
# the figure's own values, then this text. Needs gnuplot 5.0.
#
# Values: width, height, head, foot (pixels above and below the axes), title, figure (file name), key_rows, kernels (blocks of
# $dots), read_TBps, matrix_TFLOPs, ranges.
#
# Read at 85 mm, as in lines.gp: letters of 20 come out at 7.5 points.

set terminal svg noenhanced size width, height font 'sans-serif,20' background rgb 'white'
set output figure

# As in lines.gp, without its lines. Outlines first: rows of several kernels stand at one place often enough.
set style line 1 lc rgb '#0072B2' pt 6  ps 1.2 lw 2.2
set style line 2 lc rgb '#D55E00' pt 4  ps 1.2 lw 2.2
set style line 3 lc rgb '#009E73' pt 8  ps 1.4 lw 2.2
set style line 4 lc rgb '#E69F00' pt 12 ps 1.5 lw 2.2
set style line 5 lc rgb '#CC79A7' pt 10 ps 1.4 lw 2.2
set style line 6 lc rgb '#56B4E9' pt 7  ps 0.8
set style line 7 lc rgb '#000000' pt 5  ps 0.7
set style line 8 lc rgb '#0072B2' pt 9  ps 0.8
set style line 9 lc rgb '#D55E00' pt 13 ps 0.9
set style line 10 lc rgb '#D8D8D8' lw 1 dt solid
set style line 11 lc rgb '#404040' lw 2.2

set tmargin at screen 1 - head / height
set bmargin at screen foot / height
set lmargin at screen 112.0 / width
set rmargin at screen 1 - 26.0 / width
set label 1 title at screen 0.5, screen 1 - 20.0 / height center font ',17'
set label 2 'flop a byte of DRAM' at screen 0.54, screen (foot - 56.0) / height center
set label 3 'TFLOP/s' at screen 18.0 / width, screen (1 + (foot - head) / height) / 2 center rotate by 90
set border 3 lw 1.2 lc rgb '#404040'
set logscale xy
set tics nomirror out scale 0.5 textcolor rgb '#202020'
set xtics offset 0, 0.35
set ytics offset 0.4, 0
set grid xtics ytics ls 10
set samples 400
set key at screen 0.5, screen (foot - 74.0) / height center top vertical maxrows key_rows
set key reverse Left samplen 1 spacing 1.05

roof(x) = x * read_TBps < matrix_TFLOPs ? x * read_TBps : matrix_TFLOPs
plot roof(x) with lines ls 11 notitle, \
    for [i=0:kernels-1] $dots index i using 1:2 with points ls (i + 1) title columnheader(1)
