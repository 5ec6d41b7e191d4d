# How every figure looks. `kbench plot` writes a script NAME.gp into a run's plots folder: first the figure's own values, then this
# text. There `gnuplot NAME.gp` draws NAME.svg again from NAME.dat. Needs gnuplot 5.0.
#
# Values: width, height, head (pixels above the axes), foot (below them), key_rows, title, xname, yname, data, figure (file names),
# styles (of the kernels' blocks, "1 3 2"), kernels, probes, limits (how many blocks of each, in this order; x, y, low, high), ticks
# and ranges as they stand above.
#
# Read at 85 mm, where 640 pixels shrink to half: letters of 20 come out at 7.5 points.

set terminal svg noenhanced size width, height font 'sans-serif,20' background rgb 'white'
set output figure

# Okabe and Ito's palette, dark ones first and without its yellow, which white paper swallows; each with a shape of its own.
set style line 1 lc rgb '#0072B2' lw 2.2 pt 7  ps 0.8
set style line 2 lc rgb '#D55E00' lw 2.2 pt 5  ps 0.8
set style line 3 lc rgb '#009E73' lw 2.2 pt 9  ps 1.0
set style line 4 lc rgb '#E69F00' lw 2.2 pt 13 ps 1.1
set style line 5 lc rgb '#CC79A7' lw 2.2 pt 11 ps 1.0
set style line 6 lc rgb '#56B4E9' lw 2.2 pt 6  ps 0.9
set style line 7 lc rgb '#000000' lw 2.2 pt 4  ps 0.9
set style line 8 lc rgb '#505050' lw 2.2 dt (8, 6)
set style line 9 lc rgb '#505050' lw 2.2 dt (2, 5)
set style line 10 lc rgb '#D8D8D8' lw 1 dt solid

# Everything in its place by pixels: left to itself gnuplot spends a third of the height on gaps, and cuts long labels off.
set tmargin at screen 1 - head / height
set bmargin at screen foot / height
set lmargin at screen 122.0 / width
set rmargin at screen 1 - 26.0 / width
set label 1 title at screen 0.5, screen 1 - 20.0 / height center font ',17'
set label 2 xname at screen 0.55, screen (foot - 56.0) / height center
set label 3 yname at screen 18.0 / width, screen (1 + (foot - head) / height) / 2 center rotate by 90
set border 3 lw 1.2 lc rgb '#404040'
set tics nomirror out scale 0.5 textcolor rgb '#202020'
set xtics offset 0, 0.35
set ytics offset 0.4, 0
set grid xtics ytics ls 10
set key at screen 0.5, screen (foot - 74.0) / height center top vertical maxrows key_rows
set key reverse Left samplen 2 spacing 1.05 width -2

# A loop over nothing would make gnuplot 5.4 forget other lines' entries in the key, hence the pieces.
named = " title columnheader(1)"
curves = "for [i=0:kernels-1] data index i using 1:2:3:4 with yerrorlines ls (word(styles, i+1) + 0)" . named
if (probes > 0) curves = curves . ", for [i=0:probes-1] data index kernels+i using 1:2 with lines ls 8" . named
if (limits > 0) curves = curves . ", for [i=0:limits-1] data index kernels+probes+i using 1:2 with lines ls 9" . named
eval "plot " . curves
